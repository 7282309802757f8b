#pragma once
#include "nes/types.hpp"

namespace wz {

enum class Region : u8 { Ntsc, Pal };

/// How the two clocks of the console mesh. The PPU draws three dots a CPU cycle (PAL: 3.2). Within CPU cycle
/// k a register access happens after `dots_at_access(k)` dots since power-on, and the interrupt lines are
/// sampled at the cycle's end, after `dots_at_end(k)` dots.
struct Timing {
    i64 cpu_divider, ppu_divider;  ///< master clocks a CPU cycle and a dot
    i64 access_phase, end_phase;   ///< master clocks into the cycle
    int lines;                     ///< scanlines a frame, with the pre-render line last
    bool skips_odd_dot;            ///< NTSC drops a dot on odd frames while drawing

    constexpr i64 dots_at_access(i64 cycle) const {
        return (cpu_divider * cycle + access_phase) / ppu_divider;
    }
    constexpr i64 dots_at_end(i64 cycle) const { return (cpu_divider * cycle + end_phase) / ppu_divider; }
    /// The first cycle at whose end `dot` has been executed.
    constexpr i64 cycle_of_dot(i64 dot) const {
        const i64 need = ppu_divider * (dot + 1) - end_phase;
        return (need + cpu_divider - 1) / cpu_divider;
    }
    /// The last cycle whose access still happens with at most `dots` dots executed.
    constexpr i64 last_access_by(i64 dots) const {
        return (ppu_divider * (dots + 1) - 1 - access_phase) / cpu_divider;
    }
};

inline constexpr Timing kNtsc{12, 4, 4, 11, 262, true};
inline constexpr Timing kPal{16, 5, 6, 15, 312, false};
inline constexpr const Timing& timing(Region r) { return r == Region::Pal ? kPal : kNtsc; }

inline constexpr int kDotsPerLine = 341;
inline constexpr int kVblankLine = 241;

}  // namespace wz
