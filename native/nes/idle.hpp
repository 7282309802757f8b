#pragma once
#include "nes/bus.hpp"

namespace wz::idle {

/// Whether all bytes of a loop at this address lie in PRG ROM.
inline bool loop_is_in_rom(u16 loop) { return static_cast<u16>(loop - 0x8000) < 0x7FFA; }

/// The shapes of loops that only wait for the PPU status, by the bytes at the branch's target.
inline bool polls_status(const u8* loop, u8 offset) {
    const bool reads = (loop[0] == 0xAD || loop[0] == 0x2C) && loop[1] == 0x02 && loop[2] == 0x20;
    if (!reads) return false;
    if (offset == 0xFB) return true;                              // LDA|BIT $2002 / Bxx
    return offset == 0xF9 && loop[0] == 0xAD && loop[3] == 0x29;  // LDA $2002 / AND #mask / Bxx
}

/// Whether such a loop, whose branch was just taken, takes it again after reading `status`. A loop that was
/// entered at its branch need not.
inline bool turns_again(const u8* loop, u8 status, u8 a) {
    const bool masks = loop[3] == 0x29, tests_bits = loop[0] == 0x2C;
    const u8 value = masks ? status & loop[4] : status;
    const bool zero = tests_bits ? (a & value) == 0 : value == 0;
    switch (loop[masks ? 5 : 3]) {
        case 0x10:
            return !(value & 0x80);
        case 0x30:
            return value & 0x80;
        case 0x50:
            return !tests_bits || !(value & 0x40);
        case 0x70:
            return !tests_bits || (value & 0x40);
        case 0xD0:
            return !zero;
        case 0xF0:
            return zero;
        default:
            return true;  // carry, which the loop leaves alone
    }
}

/// After a taken branch to `loop`, which polls the status: the number of whole iterations that can be passed
/// over. `clock` is the cycle at the loop's head, `length` its cycles, `a` the accumulator. Every skipped
/// read would have seen what the last one saw, in the same cycle, and changed nothing.
inline i64 skippable_polls(Console& k, const u8* loop, u8 a, i64 clock, i64 length) {
    const Machine& m = k.m;
    Ppu& p = k.m.ppu;
    if (p.write_toggle || p.vblank) return 0;
    ppu::ensure_forecast(p, k.cart);
    const i64 first = k.timing.dots_at_access(clock + 3);
    const i64 horizon = bus::status_horizon(p, k.timing);
    if (first > horizon || bus::status_bits(p, first) != (p.bus & 0xE0)) return 0;
    if (!turns_again(loop, static_cast<u8>((p.bus & 0xE0) | (bus::decayed_bus(m) & 0x1F)), a)) return 0;
    // One dot before the vertical blank a read would swallow the flag, so stop short of it.
    i64 safe = horizon - 1;
    if (p.sprite_zero_dot >= first && p.sprite_zero_dot < safe) safe = p.sprite_zero_dot;
    if (p.overflow_dot >= first && p.overflow_dot < safe) safe = p.overflow_dot;
    const i64 by_status = (k.timing.last_access_by(safe) - (clock + 3)) / length + 1;
    const i64 by_limit = (m.limit - 1 - clock) / length;
    const i64 n = by_status < by_limit ? by_status : by_limit;
    return n > 0 ? n : 0;
}

/// At the head of a DEX|DEY / BNE loop: the turns, all but the last, that end before `cycles` have passed. A
/// counter of 0 goes all the way round.
inline i64 skippable_turns(u8 counter, i64 cycles, i64 length) {
    const i64 until_last = counter ? counter - 1 : 255, fit = (cycles - 1) / length;
    return until_last < fit ? until_last : fit;
}

}  // namespace wz::idle
