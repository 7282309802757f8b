#pragma once
#include "nes/types.hpp"

namespace wz {

enum class Region : u8 { Ntsc, Pal };

/// How the two clocks of the console mesh. The PPU draws three dots a CPU cycle (PAL: 3.2). Within CPU cycle
/// k a register access happens after `dots_at_access(k)` dots since power-on, and the interrupt lines are
/// sampled at the cycle's end, after `dots_at_end(k)` dots.
struct Timing {
    int lines;           ///< scanlines a frame, with the pre-render line last
    bool skips_odd_dot;  ///< NTSC drops a dot on odd frames while drawing
    bool pal;

    constexpr i64 dots_at_access(i64 cycle) const {
        return of_region([=](auto c) { return (c.cpu * cycle + c.access) / c.ppu; });
    }
    constexpr i64 dots_at_end(i64 cycle) const {
        return of_region([=](auto c) { return (c.cpu * cycle + c.end) / c.ppu; });
    }
    /// The first cycle at whose end `dot` has been executed.
    constexpr i64 cycle_of_dot(i64 dot) const {
        return of_region([=](auto c) { return (c.ppu * (dot + 1) - c.end + c.cpu - 1) / c.cpu; });
    }
    /// The last cycle whose access still happens with at most `dots` dots executed.
    constexpr i64 last_access_by(i64 dots) const {
        return of_region([=](auto c) { return (c.ppu * (dots + 1) - 1 - c.access) / c.cpu; });
    }

  private:
    /// Master clocks a CPU cycle and a dot, and how many of them into the cycle an access and its end are.
    template <i64 Cpu, i64 Ppu, i64 Access, i64 End>
    struct Clocks {
        static constexpr i64 cpu = Cpu, ppu = Ppu, access = Access, end = End;
    };
    /// Divisions by numbers that the compiler knows are many times cheaper.
    template <class Formula>
    constexpr i64 of_region(Formula f) const {
        return pal ? f(Clocks<16, 5, 6, 15>{}) : f(Clocks<12, 4, 4, 11>{});
    }
};

inline constexpr Timing kNtsc{262, true, false};
inline constexpr Timing kPal{312, false, true};
inline constexpr const Timing& timing(Region r) { return r == Region::Pal ? kPal : kNtsc; }

inline constexpr int kDotsPerLine = 341;
inline constexpr int kVblankLine = 241;

}  // namespace wz
