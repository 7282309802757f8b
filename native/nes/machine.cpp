#include "nes/machine.hpp"

#include <algorithm>

#include "nes/bus.hpp"
#include "nes/cpu.hpp"
#include "nes/jit.hpp"

namespace wz {
namespace {

/// Palette memory as found after switching on a console; games that show it before writing it are rare.
constexpr u8 kPowerOnPalette[32] = {0x09, 0x01, 0x00, 0x01, 0x00, 0x02, 0x02, 0x0D, 0x08, 0x10, 0x08,
                                    0x24, 0x00, 0x00, 0x04, 0x2C, 0x09, 0x01, 0x34, 0x03, 0x00, 0x04,
                                    0x00, 0x14, 0x08, 0x3A, 0x00, 0x02, 0x00, 0x20, 0x2C, 0x08};

u16 vector_at(const Cartridge& c, u16 addr) {
    return static_cast<u16>(c.prg[addr & 0x7FFF] | c.prg[(addr + 1) & 0x7FFF] << 8);
}

/// The cycle at whose end the APU's interrupt line is, or next becomes, high.
i64 irq_sample(const Machine& m) { return apu::next_irq(m.apu, m.region); }

/// Events that need attention at an instruction boundary but interrupt nothing.
void settle(Console& k) {
    Machine& m = k.m;
    if (m.clock >= m.frame_begin) bus::sync_ppu(k, k.timing.dots_at_access(m.clock));
    if (m.clock >= m.frame_begin) m.frame_begin = m.clock + 1;  // the dot was not dropped: ask again
    if (m.apu.reset_at < m.clock || apu::next_dmc(m.apu, m.region) < m.clock) {
        apu::sync(m.apu, m.region, m.clock);
        if (m.apu.dmc_fetch_at < m.clock) {
            apu::dmc_fetched(m.apu);
            m.clock += 4;
        }
    }
}

/// The first two cycles of an interrupt fetch an instruction that is not executed: registers notice.
void fetch_in_vain(Console& k) {
    if (k.m.pc < 0x2000 || k.m.pc >= 0x4020) return;
    for (int i = 0; i < 2; ++i) bus::read_any(k, k.m.pc, k.m.clock + i);
}

bool poll_interrupts(Console& k) {
    Machine& m = k.m;
    const i64 polled = m.clock - m.stolen - (m.tail == Tail::TakenBranch);
    m.stolen = 0;
    if (m.tail == Tail::NoPoll || m.jammed) return false;
    if (polled >= m.nmi_sample + 2) {
        m.nmi_sample = kNever;
        fetch_in_vain(k);
        cpu::enter_interrupt(m, k.cart, 0xFFFA);
        return true;
    }
    const bool masked = m.tail == Tail::FlagChange ? m.tail_interrupt_disable : m.p & cpu::kInterrupt;
    if (!masked && apu::irq_at_end_of(m.apu, m.region, polled - 2)) {
        apu::sync(m.apu, m.region, m.clock);
        fetch_in_vain(k);
        cpu::enter_interrupt(m, k.cart, 0xFFFE);
        return true;
    }
    return false;
}

i64 next_event(const Machine& m) {
    i64 at = std::min({m.frame_end, m.frame_begin, m.nmi_sample + 2, m.apu.reset_at + 1,
                       apu::next_dmc(m.apu, m.region) + 1});
    if (!(m.p & cpu::kInterrupt)) at = std::min(at, irq_sample(m) + 2);
    return at;
}

void start(Machine& m, const Cartridge& c) {
    m.pc = vector_at(c, 0xFFFC);
    m.clock += 7;
    m.tail = Tail::NoPoll;
    m.jammed = 0;
}

/// The sound unit's times against the clock. It may be far behind, for it is brought up to date on access,
/// but its parts agree with each other, and a sample that plays is looked at before its buffer runs out.
std::string invalid_sound(const Apu& a, i64 clock) {
    constexpr i64 kSlack = 4096, kLongestSequence = 41566, kLongestPeriod = 428;
    auto near = [](i64 v, i64 to) { return v >= to - kSlack && v <= to + kSlack; };
    const bool plays = a.dmc_bytes_left || a.dmc_fetch_at != kNever;
    if (a.now > clock + kSlack || (plays && a.now < clock - 8 * kLongestPeriod - kSlack) ||
        (a.dmc_fetch_at != kNever && !near(a.dmc_fetch_at, clock)))
        return "its sound unit is not where its processor is";
    if (a.sequence_start > a.now + kSlack || a.sequence_start < a.now - kLongestSequence - kSlack ||
        !near(a.dmc_next_bit, a.now) || (a.reset_at != kNever && !near(a.reset_at, a.now)))
        return "its sound unit is in no possible state";
    return "";
}

}  // namespace

void power_on(Machine& m, const Cartridge& c, Region region) {
    m = Machine{};
    m.region = region;
    m.s = 0xFD;
    m.p = cpu::kInterrupt | cpu::kUnused;
    std::memcpy(m.ppu.palette, kPowerOnPalette, sizeof kPowerOnPalette);
    if (c.has_trainer) {
        std::memcpy(m.wram + 0x1000, c.trainer.data(), c.trainer.size());
        m.wram_used = 1;
    }
    apu::power_on(m.apu);
    start(m, c);
}

void press_reset(Machine& m, const Cartridge& c) {
    m.s = static_cast<u8>(m.s - 3);
    m.p |= cpu::kInterrupt;
    m.nmi_sample = kNever;
    Console k{m, c, timing(m.region), nullptr};
    bus::sync_ppu(k, k.timing.dots_at_access(m.clock));
    ppu::drop_forecast(m.ppu);
    m.ppu.ctrl = m.ppu.mask = 0;
    m.ppu.write_toggle = m.ppu.read_buffer = m.ppu.fine_x = 0;
    m.ppu.t = 0;
    apu::reset(m.apu, m.region, m.clock);
    start(m, c);
}

void run_frame(Machine& m, const Cartridge& c, u8 buttons1, u8 buttons2, Frame* out, RunOptions options) {
    Console k{m, c, timing(m.region), out};
    m.buttons[0] = buttons1;
    m.buttons[1] = buttons2;
    m.pad_read = 0;
    if (out && out->reader) out->reader->begin();
    for (;;) {
        settle(k);
        if (m.clock >= m.frame_end) break;
        if (poll_interrupts(k)) continue;
        m.limit = std::max(next_event(m), m.clock + 1);
        if (options.translate && options.skip_idle_loops && c.translation)
            jit::execute(*c.translation, k);
        else if (options.skip_idle_loops)
            cpu::execute<true>(k);
        else
            cpu::execute<false>(k);
    }
    bus::sync_ppu(k, std::max(k.timing.dots_at_access(m.clock), ppu::vblank_dot(m.ppu) + 1));
    m.frame_end = kNever;
    m.frame_begin = k.timing.cycle_of_dot(m.ppu.origin + ppu::frame_dots(k.timing) - 2);
    m.lagged = !m.pad_read;
    ++m.frame;
}

u8 peek(const Machine& m, const Cartridge& c, u16 addr) {
    if (addr < 0x2000) return m.ram[addr & 0x7FF];
    if (addr >= 0x8000) return c.prg[addr & 0x7FFF];
    if (addr >= 0x6000) return m.wram[addr & 0x1FFF];
    return addr < 0x4000 ? m.ppu.bus : static_cast<u8>(addr >> 8);
}

std::string invalid_state(const Machine& m) {
    const Timing& t = timing(m.region);
    if (m.region > Region::Pal) return "it names a region that does not exist";
    if (m.tail > Tail::NoPoll || m.jammed > 1) return "its processor is in no possible state";
    // A day of play is far below 2^50 master clocks; beyond that, times could overflow when multiplied.
    constexpr i64 kLatest = i64{1} << 50;
    auto moment = [](i64 v) { return v >= -kDotsPerLine && v < kLatest; };
    const Ppu& p = m.ppu;
    const Apu& a = m.apu;
    for (i64 v : {m.clock, p.origin, p.done, a.sequence_start, a.now, a.dmc_next_bit})
        if (!moment(v)) return "it holds a time that can't be";
    for (i64 v : {m.frame_end, m.frame_begin, m.nmi_sample, m.scheduled_origin, p.sprite_zero_dot,
                  p.overflow_dot, a.reset_at, a.dmc_fetch_at, a.clocked_at, a.irq_since, a.irq_until})
        if (v != kNever && !moment(v)) return "it holds a time that can't be";
    const i64 dots = t.dots_at_access(m.clock);
    if (p.done < p.origin || p.done - p.origin > ppu::frame_dots(t) || p.done > dots + ppu::frame_dots(t) ||
        dots - p.done > 2 * ppu::frame_dots(t))
        return "its picture unit is not where its processor is";
    if (m.frame_end != kNever && m.frame_end > m.clock + 2 * ppu::frame_dots(t))
        return "its frame never ends";
    if (m.frame_end == kNever && m.frame_begin > m.clock + 2 * ppu::frame_dots(t))
        return "its frame never begins";
    if (p.fine_x > 7 || p.v > 0x7FFF || p.t > 0x7FFF || p.vblank > 1 || p.odd_frame > 1 || p.write_toggle > 1)
        return "its picture unit is in no possible state";
    if (a.step > 5 || a.dmc_rate > 15 || a.dmc_bits < 1 || a.dmc_bits > 8 || a.five_step > 1 ||
        a.five_step_next > 1)
        return "its sound unit is in no possible state";
    return invalid_sound(a, m.clock);
}

}  // namespace wz
