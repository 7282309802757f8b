#pragma once
#include "nes/bus.hpp"

namespace wz::idle {

/// After a taken branch backwards: if the loop just entered only waits for the PPU status to change, the
/// number of whole iterations that can be passed over. `clock` is the cycle at the loop's head, `length` its
/// cycles. Every skipped read would have seen what the last one saw, in the same cycle, and changed nothing.
inline i64 skippable_polls(Console& k, i64 clock, i64 length) {
    const Machine& m = k.m;
    Ppu& p = k.m.ppu;
    if (p.write_toggle || p.vblank) return 0;
    ppu::ensure_forecast(p, k.cart);
    const i64 first = k.timing.dots_at_access(clock + 3);
    const i64 horizon = bus::status_horizon(p, k.timing);
    if (first > horizon || bus::status_bits(p, first) != (p.bus & 0xE0)) return 0;
    // One dot before the vertical blank a read would swallow the flag, so stop short of it.
    i64 safe = horizon - 1;
    if (p.sprite_zero_dot >= first && p.sprite_zero_dot < safe) safe = p.sprite_zero_dot;
    if (p.overflow_dot >= first && p.overflow_dot < safe) safe = p.overflow_dot;
    const i64 by_status = (k.timing.last_access_by(safe) - (clock + 3)) / length + 1;
    const i64 by_limit = (m.limit - 1 - clock) / length;
    const i64 n = by_status < by_limit ? by_status : by_limit;
    return n > 0 ? n : 0;
}

/// The shapes of such loops, by the bytes at the branch's target.
inline bool polls_status(const u8* loop, u8 offset) {
    const bool reads = (loop[0] == 0xAD || loop[0] == 0x2C) && loop[1] == 0x02 && loop[2] == 0x20;
    if (!reads) return false;
    if (offset == 0xFB) return true;                              // LDA|BIT $2002 / Bxx
    return offset == 0xF9 && loop[0] == 0xAD && loop[3] == 0x29;  // LDA $2002 / AND #mask / Bxx
}

}  // namespace wz::idle
