// Translated code against the interpreter, with and without skipping idle loops: the whole machine must be
// the same at every stop. Usage: jit_equivalence [ROM [programs [frames]]]; the ROM also from $WARPZONE_ROM,
// else only random programs run.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "nes/cpu.hpp"
#include "nes/jit.hpp"
#include "tests/jit_random_program.hpp"

namespace {

using namespace wz;
using test::Random;

int failures = 0;

void report(const char* what, u64 seed, long step, const Machine& want, const Machine& got) {
    if (++failures > 5) return;
    std::printf("%s, seed %llu, step %ld: the machines differ\n", what, static_cast<unsigned long long>(seed),
                step);
    std::printf(
        "  clock %lld %lld  limit %lld %lld  pc %04X %04X  a %02X %02X  x %02X %02X  y %02X %02X  s %02X "
        "%02X  "
        "p %02X %02X  tail %d %d\n",
        static_cast<long long>(want.clock), static_cast<long long>(got.clock),
        static_cast<long long>(want.limit), static_cast<long long>(got.limit), want.pc, got.pc, want.a, got.a,
        want.x, got.x, want.y, got.y, want.s, got.s, want.p, got.p, static_cast<int>(want.tail),
        static_cast<int>(got.tail));
    for (int i = 0; i < 0x800; ++i)
        if (want.ram[i] != got.ram[i]) std::printf("  ram[%03X] %02X %02X\n", i, want.ram[i], got.ram[i]);
}

bool same(const Machine& a, const Machine& b) { return std::memcmp(&a, &b, sizeof a) == 0; }

/// The same to the program. Skipping a loop that polls the PPU asks for forecasts that reading it one by one
/// does not, so what the picture unit knows in advance may differ.
bool same_to_program(const Machine& a, const Machine& b) {
    return a.clock == b.clock && a.pc == b.pc && a.a == b.a && a.x == b.x && a.y == b.y && a.s == b.s &&
           a.p == b.p && a.tail == b.tail && a.jammed == b.jammed &&
           std::memcmp(a.ram, b.ram, sizeof a.ram) == 0 && std::memcmp(a.wram, b.wram, sizeof a.wram) == 0 &&
           std::memcmp(a.ppu.vram, b.ppu.vram, sizeof a.ppu.vram) == 0 &&
           std::memcmp(a.ppu.oam, b.ppu.oam, sizeof a.ppu.oam) == 0;
}

void scramble(Machine& m, Random& r) {
    for (u8& b : m.ram) b = r.byte();
    // Pointers that mostly lead to RAM and ROM.
    for (int i = 0; i < 32; ++i)
        if (i & 1)
            m.ram[i] = r.chance(45) ? static_cast<u8>(r.below(8)) : r.chance(80) ? m.ram[i] | 0x80 : m.ram[i];
    m.a = r.byte(), m.x = r.byte(), m.y = r.byte(), m.s = r.byte();
    m.p = static_cast<u8>((r.byte() & ~cpu::kBreak) | cpu::kUnused);
}

/// Runs of random length from random places, without the rest of the console's schedule.
void compare_runs(const char* what, const Cartridge& cart, u64 seed, int runs) {
    Random r(seed);
    static Machine plain, want, got;
    power_on(want, cart, seed & 1 ? Region::Pal : Region::Ntsc);
    scramble(want, r);
    std::memcpy(static_cast<void*>(&got), &want, sizeof want);
    std::memcpy(static_cast<void*>(&plain), &want, sizeof want);
    for (int i = 0; i < runs; ++i) {
        const i64 limit = want.clock + 1 + r.below(r.chance(50) ? 40 : r.chance(80) ? 600 : 6000);
        const bool restart = want.jammed || want.pc < 0x8000 || r.chance(4);
        const u16 pc = static_cast<u16>(0x8000 + r.below(0x8000));
        for (Machine* m : {&plain, &want, &got}) {
            m->limit = limit;
            if (restart) m->pc = pc, m->jammed = 0;
        }
        Console a{want, cart, timing(want.region), nullptr}, b{got, cart, timing(got.region), nullptr};
        cpu::execute<true>(a);
        jit::execute(*cart.translation, b);
        if (!same(want, got)) return report(what, seed, i, want, got);
        Console c{plain, cart, timing(plain.region), nullptr};
        cpu::execute<false>(c);
        if (!same_to_program(plain, want)) return report("skipping idle loops", seed, i, plain, want);
    }
}

void compare_frames(const char* what, const Cartridge& cart, u64 seed, long frames, Region region,
                    bool drawn) {
    Random r(seed);
    static Machine plain, want, got;
    static Frame want_picture, got_picture;
    power_on(want, cart, region);
    std::memcpy(static_cast<void*>(&got), &want, sizeof want);
    std::memcpy(static_cast<void*>(&plain), &want, sizeof want);
    std::memset(static_cast<void*>(&want_picture), 0, sizeof want_picture);
    std::memset(static_cast<void*>(&got_picture), 0, sizeof got_picture);
    u8 buttons = 0;
    for (long i = 0; i < frames; ++i) {
        if (r.chance(12)) buttons = r.byte() & (kA | kB | kLeft | kRight | kDown | kUp);
        if (r.chance(50)) buttons |= kRight;
        const u8 pressed = i % 256 < 4 ? u8{kStart} : buttons;
        if (want.jammed) plain.jammed = want.jammed = got.jammed = 0;
        run_frame(want, cart, pressed, 0, drawn ? &want_picture : nullptr, {true, false});
        run_frame(got, cart, pressed, 0, drawn ? &got_picture : nullptr, {true, true});
        if (!same(want, got)) return report(what, seed, i, want, got);
        run_frame(plain, cart, pressed, 0, nullptr, {false, false});
        if (!same_to_program(plain, want)) return report("frames without skips", seed, i, plain, want);
        if (drawn && std::memcmp(&want_picture, &got_picture, sizeof want_picture) != 0) {
            std::printf("%s: pictures differ in frame %ld\n", what, i);
            ++failures;
            return;
        }
    }
}

/// A delay loop that is entered at its branch, for every counter and with too little time for all of it.
void compare_delay_loops() {
    for (const u8 step : {u8{0xCA}, u8{0x88}})
        for (const u16 at : {u16{0x8000}, u16{0x80FD}}) {
            std::vector<u8> prg(test::kPrgSize, 0xEA);
            const u8 loop[] = {step, 0xD0, 0xFD, 0x02};
            std::memcpy(prg.data() + (at & 0x7FFF), loop, sizeof loop);
            Random r(1);
            const auto cart = cartridge_of(prg, r);
            for (int counter = 0; counter < 256; ++counter)
                for (const i64 cycles : {1, 4, 9, 33, 700, 2000}) {
                    static Machine machines[3];
                    for (Machine& m : machines) {
                        power_on(m, *cart, Region::Ntsc);
                        m.pc = static_cast<u16>(at + 1);
                        m.x = m.y = static_cast<u8>(counter);
                        m.p = cpu::kUnused | cpu::kNegative;
                        m.limit = m.clock + cycles;
                    }
                    Console a{machines[0], *cart, timing(Region::Ntsc), nullptr},
                        b{machines[1], *cart, timing(Region::Ntsc), nullptr},
                        c{machines[2], *cart, timing(Region::Ntsc), nullptr};
                    cpu::execute<false>(a);
                    cpu::execute<true>(b);
                    if (!same(machines[0], machines[1]))
                        report("delay loop skipped", static_cast<u64>(counter), cycles, machines[0],
                               machines[1]);
                    if (!cart->translation) continue;
                    jit::execute(*cart->translation, c);
                    if (!same(machines[0], machines[2]))
                        report("delay loop translated", static_cast<u64>(counter), cycles, machines[0],
                               machines[2]);
                }
        }
    std::printf("delay loops: %d failures\n", failures);
}

}  // namespace

int main(int argc, char** argv) {
    const char* rom = argc > 1 ? argv[1] : std::getenv("WARPZONE_ROM");
    const int programs = argc > 2 ? std::atoi(argv[2]) : 60;
    const long frames = argc > 3 ? std::atol(argv[3]) : 20000;
    compare_delay_loops();
    for (int i = 0; i < programs; ++i) {
        const u64 seed = static_cast<u64>(i);
        Random r(seed);
        const bool soup = i % 4 == 3;
        const auto cart = cartridge_of(soup ? test::byte_soup(r) : test::structured_program(r), r);
        if (!cart->translation) {
            std::printf("no translation on this machine: nothing to compare\n");
            return 0;
        }
        compare_runs(soup ? "byte soup" : "program", *cart, seed, 4000);
        compare_frames(soup ? "byte soup by frames" : "program by frames", *cart, seed, 120,
                       i & 1 ? Region::Pal : Region::Ntsc, i % 8 == 0);
    }
    std::printf("%d random programs: %d failures\n", programs, failures);
    if (rom && *rom) {
        std::ifstream file(rom, std::ios::binary);
        const std::vector<u8> image{std::istreambuf_iterator<char>(file), {}};
        const auto cart = Cartridge::parse(image);
        compare_frames("play", *cart, 1, frames, Region::Ntsc, false);
        compare_frames("drawn play", *cart, 2, frames, Region::Ntsc, true);
        compare_frames("PAL play", *cart, 3, frames / 4, Region::Pal, false);
        std::printf("%ld frames of play: %d failures\n", 2 * frames + frames / 4, failures);
    }
    return failures != 0;
}
