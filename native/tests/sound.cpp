// The sound unit brought up to date in one go, however long that is, against cycle by cycle.
#include "nes/apu.hpp"
#include "tests/expect.hpp"
#include "tests/jit_random_program.hpp"

namespace {

using namespace wz;
using test::Random;

bool same(const Apu& a, const Apu& b) {
    return a.sequence_start == b.sequence_start && a.now == b.now && a.reset_at == b.reset_at &&
           a.step == b.step && a.five_step == b.five_step && a.frame_irq == b.frame_irq &&
           std::memcmp(a.length, b.length, 4) == 0 && a.clocked == b.clocked &&
           a.clocked_at == b.clocked_at && a.irq_since == b.irq_since && a.irq_until == b.irq_until &&
           a.dmc_buffer_full == b.dmc_buffer_full && a.dmc_bits == b.dmc_bits &&
           a.dmc_bytes_left == b.dmc_bytes_left && a.dmc_next_bit == b.dmc_next_bit &&
           a.dmc_fetch_at == b.dmc_fetch_at;
}

void scribble(Apu& a, Region region, Random& r, i64& cycle) {
    apu::power_on(a);
    for (int i = 0; i < 30; ++i) {
        cycle += r.below(4000);
        const u16 registers[] = {0x4000, 0x4003, 0x4004, 0x4007, 0x4008, 0x400B,
                                 0x400C, 0x400F, 0x4010, 0x4015, 0x4017};
        apu::write(a, region, registers[r.below(std::size(registers))], static_cast<u8>(r.byte() & ~0x10),
                   cycle);
    }
    // A sample's last byte may still be in the buffer.
    a.dmc_buffer_full = r.chance(50);
}

}  // namespace

int main() {
    for (u64 seed = 0; seed < 200; ++seed) {
        Random r(seed);
        const Region region = seed & 1 ? Region::Pal : Region::Ntsc;
        Apu at_once;
        i64 cycle = 0;
        scribble(at_once, region, r, cycle);
        Apu bit_by_bit = at_once;
        const i64 until = cycle + r.below(r.chance(50) ? 100'000 : 12'000'000);
        apu::sync(at_once, region, until);
        while (cycle < until)
            apu::sync(bit_by_bit, region, cycle = std::min<i64>(until, cycle + 1 + r.below(3000)));
        EXPECT(same(at_once, bit_by_bit));
    }
    return test::result("sound");
}
