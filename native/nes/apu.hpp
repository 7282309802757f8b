#pragma once
#include "nes/timing.hpp"

namespace wz {

/// The part of the sound chip that a program can see: length counters, the frame counter with its interrupt,
/// and the sample channel's (DMC) memory reader with its interrupt. It makes no sound. Brought up to date on
/// access.
struct Apu {
    i64 sequence_start = 0;  ///< CPU cycle at which the running frame-counter sequence began
    i64 now = 0;             ///< CPU cycle up to which the state is current
    i64 reset_at = kNever;   ///< a write to $4017 takes effect here
    u8 step = 0;             ///< next step of the sequence
    u8 five_step = 0, five_step_next = 0;
    u8 irq_inhibit = 0;
    u8 frame_irq = 0;
    u8 enabled = 0;  ///< $4015 bits 0-3
    u8 length[4] = {};
    u8 halt[4] = {};
    u8 clocked = 0;       ///< length counters that counted down ...
    i64 clocked_at = -1;  ///< ... in this cycle
    /// The interrupt line is high at the ends of cycles from the first of these up to, not including, the
    /// second.
    i64 irq_since = kNever, irq_until = kNever;
    // DMC
    u8 dmc_irq_enabled = 0, dmc_loop = 0, dmc_irq = 0, dmc_rate = 0;
    u8 dmc_address = 0, dmc_length = 0;
    u8 dmc_buffer_full = 0, dmc_bits = 8;
    u16 dmc_bytes_left = 0;
    i64 dmc_next_bit = 0;       ///< cycle of the next output-unit clock
    i64 dmc_fetch_at = kNever;  ///< cycle at which the reader wants a byte from memory
};

namespace apu {

inline constexpr u8 kLengths[32] = {10, 254, 20, 2,  40, 4,  80, 6,  160, 8,  60, 10, 14, 12, 26, 14,
                                    12, 16,  24, 18, 48, 20, 96, 22, 192, 24, 72, 26, 16, 28, 32, 30};
inline constexpr u16 kDmcPeriod[2][16] = {
    {428, 380, 340, 320, 286, 254, 226, 214, 190, 160, 142, 128, 106, 84, 72, 54},
    {398, 354, 316, 298, 276, 236, 210, 198, 176, 148, 132, 118, 98, 78, 66, 50}};

/// What a step of the frame counter does.
enum : u8 { kQuarter = 1, kHalf = 2, kIrq = 4, kWrap = 8 };
struct Step {
    i32 cycle;
    u8 does;
};
inline constexpr Step kFour[2][6] = {{{7457, kQuarter},
                                      {14913, kQuarter | kHalf},
                                      {22371, kQuarter},
                                      {29828, kIrq},
                                      {29829, kQuarter | kHalf | kIrq},
                                      {29830, kIrq | kWrap}},
                                     {{8313, kQuarter},
                                      {16627, kQuarter | kHalf},
                                      {24939, kQuarter},
                                      {33252, kIrq},
                                      {33253, kQuarter | kHalf | kIrq},
                                      {33254, kIrq | kWrap}}};
inline constexpr Step kFive[2][6] = {{{7457, kQuarter},
                                      {14913, kQuarter | kHalf},
                                      {22371, kQuarter},
                                      {29829, 0},
                                      {37281, kQuarter | kHalf},
                                      {37282, kWrap}},
                                     {{8313, kQuarter},
                                      {16627, kQuarter | kHalf},
                                      {24939, kQuarter},
                                      {33253, 0},
                                      {41565, kQuarter | kHalf},
                                      {41566, kWrap}}};

inline const Step& next_step(const Apu& a, Region r) {
    return (a.five_step ? kFive : kFour)[static_cast<int>(r)][a.step];
}

inline void clock_lengths(Apu& a, i64 cycle) {
    a.clocked = 0;
    a.clocked_at = cycle;
    for (int i = 0; i < 4; ++i)
        if (a.length[i] && !a.halt[i]) {
            --a.length[i];
            a.clocked = static_cast<u8>(a.clocked | 1 << i);
        }
}

inline bool irq_line(const Apu& a) { return a.frame_irq || a.dmc_irq; }
inline void raise_irq(Apu& a, u8& flag, i64 cycle) {
    if (!irq_line(a)) {
        a.irq_since = cycle;
        a.irq_until = kNever;
    }
    flag = 1;
}
inline void lower_irq(Apu& a, u8& flag, i64 cycle) {
    const bool was_high = irq_line(a);
    flag = 0;
    if (was_high && !irq_line(a)) a.irq_until = cycle;
}

/// At the start of a sequence, all interrupts of the one before raised: passes over whole sequences before
/// `cycle`, all but one. They only count lengths down.
inline void skip_sequences(Apu& a, Region r, i64 cycle) {
    const i64 length = (a.five_step ? kFive : kFour)[static_cast<int>(r)][5].cycle;
    const i64 turns = ((a.reset_at < cycle ? a.reset_at : cycle) - a.sequence_start) / length - 1;
    if (turns <= 0) return;
    a.sequence_start += turns * length;
    for (int i = 0; i < 4; ++i)
        if (!a.halt[i]) a.length[i] = static_cast<u8>(a.length[i] > 2 * turns ? a.length[i] - 2 * turns : 0);
}

/// Runs the frame counter and the DMC output unit through every cycle before `cycle`. What they do in a cycle
/// comes before the processor's access in it, so an access in cycle c wants them synced to c + 1.
inline void sync(Apu& a, Region r, i64 cycle) {
    for (;;) {
        const Step& s = next_step(a, r);
        const i64 at = a.sequence_start + s.cycle;
        if (a.reset_at < cycle && a.reset_at <= at) {
            a.five_step = a.five_step_next;
            a.sequence_start = a.reset_at;
            a.reset_at = kNever;
            a.step = 0;
            if (a.five_step) clock_lengths(a, a.sequence_start);
            continue;
        }
        if (at >= cycle) break;
        if (s.does & kHalf) clock_lengths(a, at);
        if ((s.does & kIrq) && !a.irq_inhibit) raise_irq(a, a.frame_irq, at);
        if (s.does & kWrap) {
            a.sequence_start = at;
            a.step = 0;
            skip_sequences(a, r, cycle);
        } else {
            ++a.step;
        }
    }
    // The output unit's clock runs whether or not there is anything to play; while it is silent many ticks
    // are one.
    const i64 period = kDmcPeriod[static_cast<int>(r)][a.dmc_rate];
    while (a.dmc_next_bit < cycle) {
        if (!a.dmc_buffer_full && a.dmc_fetch_at == kNever) {
            const i64 ticks = (cycle - a.dmc_next_bit + period - 1) / period;
            a.dmc_next_bit += ticks * period;
            a.dmc_bits = static_cast<u8>(((a.dmc_bits - 1 - ticks) % 8 + 8) % 8 + 1);
            break;
        }
        if (--a.dmc_bits == 0) {
            a.dmc_bits = 8;
            if (a.dmc_buffer_full) {
                a.dmc_buffer_full = 0;
                if (a.dmc_bytes_left) a.dmc_fetch_at = a.dmc_next_bit + 1;
            }
        }
        a.dmc_next_bit += period;
    }
    a.now = cycle;
}

/// The memory reader got its byte.
inline void dmc_fetched(Apu& a) {
    const i64 at = a.dmc_fetch_at;
    a.dmc_fetch_at = kNever;
    a.dmc_buffer_full = 1;
    if (a.dmc_bytes_left && --a.dmc_bytes_left == 0) {
        if (a.dmc_loop)
            a.dmc_bytes_left = static_cast<u16>(a.dmc_length * 16 + 1);
        else if (a.dmc_irq_enabled)
            raise_irq(a, a.dmc_irq, at);
    }
}

/// The cycle at whose end the interrupt line next rises by itself, or did if it is high already.
inline i64 next_irq(const Apu& a, Region r) {
    if (irq_line(a)) return a.irq_since;
    if (a.irq_inhibit || a.five_step) return kNever;
    return a.sequence_start + kFour[static_cast<int>(r)][a.step < 3 ? 3 : a.step].cycle;
}

/// Whether the interrupt line is high at the end of `cycle`, which is not before the last sync.
inline bool irq_at_end_of(const Apu& a, Region r, i64 cycle) {
    return (cycle >= a.irq_since && cycle < a.irq_until) || cycle >= next_irq(a, r);
}

/// The cycle by which the DMC must be looked at again, kNever while it is silent.
inline i64 next_dmc(const Apu& a, Region r) {
    if (a.dmc_fetch_at != kNever) return a.dmc_fetch_at;
    if (!a.dmc_bytes_left) return kNever;
    return a.dmc_next_bit + (a.dmc_bits - 1) * i64{kDmcPeriod[static_cast<int>(r)][a.dmc_rate]} + 1;
}

inline void write(Apu& a, Region r, u16 addr, u8 value, i64 cycle) {
    sync(a, r, cycle + 1);
    switch (addr) {
        case 0x4000:
            a.halt[0] = (value >> 5) & 1;
            break;
        case 0x4004:
            a.halt[1] = (value >> 5) & 1;
            break;
        case 0x4008:
            a.halt[2] = value >> 7;
            break;
        case 0x400C:
            a.halt[3] = (value >> 5) & 1;
            break;
        case 0x4003:
        case 0x4007:
        case 0x400B:
        case 0x400F: {
            const int i = (addr - 0x4003) >> 2;
            // A counter that counts down in this very cycle does not notice.
            const bool busy = a.clocked_at == cycle && (a.clocked >> i & 1);
            if ((a.enabled >> i & 1) && !busy) a.length[i] = kLengths[value >> 3];
            break;
        }
        case 0x4010:
            a.dmc_irq_enabled = value >> 7;
            a.dmc_loop = (value >> 6) & 1;
            a.dmc_rate = value & 15;
            if (!a.dmc_irq_enabled) lower_irq(a, a.dmc_irq, cycle);
            break;
        case 0x4012:
            a.dmc_address = value;
            break;
        case 0x4013:
            a.dmc_length = value;
            break;
        case 0x4015:
            a.enabled = value & 15;
            for (int i = 0; i < 4; ++i)
                if (!(value >> i & 1)) a.length[i] = 0;
            lower_irq(a, a.dmc_irq, cycle);
            if (!(value & 16)) {
                a.dmc_bytes_left = 0;
                a.dmc_fetch_at = kNever;
            } else if (a.dmc_bytes_left == 0) {
                a.dmc_bytes_left = static_cast<u16>(a.dmc_length * 16 + 1);
                // An empty buffer is filled before the next instruction.
                if (!a.dmc_buffer_full) a.dmc_fetch_at = cycle;
            }
            break;
        case 0x4017:
            a.five_step_next = value >> 7;
            a.irq_inhibit = (value >> 6) & 1;
            if (a.irq_inhibit) lower_irq(a, a.frame_irq, cycle);
            // The counter restarts on the sound chip's own half-rate clock.
            a.reset_at = cycle + ((cycle & 1) ? 4 : 3);
            break;
        default:
            break;
    }
}

/// $4015: reading it acknowledges the frame interrupt.
inline u8 read_status(Apu& a, Region r, i64 cycle) {
    sync(a, r, cycle + 1);
    u8 v = 0;
    for (int i = 0; i < 4; ++i) v = static_cast<u8>(v | ((a.length[i] != 0) << i));
    v = static_cast<u8>(v | ((a.dmc_bytes_left != 0) << 4) | (a.frame_irq << 6) | (a.dmc_irq << 7));
    lower_irq(a, a.frame_irq, cycle);
    return v;
}

inline void power_on(Apu& a) {
    a = Apu{};
    // As if $00 had been written to $4017 nine cycles before the first instruction.
    a.sequence_start = 1;
    a.dmc_next_bit = 0;
}

inline void reset(Apu& a, Region r, i64 cycle) {
    const u8 mode = static_cast<u8>((a.five_step << 7) | (a.irq_inhibit << 6));
    write(a, r, 0x4015, 0, cycle);
    a.halt[0] = a.halt[1] = a.halt[3] = 0;  // but not the triangle's
    write(a, r, 0x4017, mode, cycle);
    a.reset_at -= 2;
    lower_irq(a, a.frame_irq, cycle);
}

}  // namespace apu
}  // namespace wz
