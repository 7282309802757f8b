#pragma once
#include "nes/bus.hpp"

namespace wz::jit {

/// Why translated code handed control back.
enum class Exit : u32 {
    NearLimit,  ///< the next trace might run past the limit
    Interpret,  ///< the instruction at pc is one for the interpreter
    Unknown,    ///< pc has no translation yet
    LimitMoved  ///< an access moved the limit: decide anew
};

/// Where emitted code expects to find the byte at $0000: this far behind its RAM pointer, so that all of the
/// zero page lies within reach of an 8-bit displacement.
inline constexpr int kRamBias = 128;

/// What driver and translated code share during a run. The CPU's state is loaded from here on entry and
/// stored on exit.
struct Context {
    i64 remaining;  ///< cycles until the limit
    i64 limit;      ///< what `Machine::limit` was on entry
    u32 a, x, y, s;
    u32 nz;     ///< Z: the low byte is 0. N: bit 7 or bit 15
    u32 carry;  ///< 0 or 1
    u32 overflow;
    u32 pc;
    Exit exit;
    u8* ram;  ///< plus kRamBias
    const u8* prg;
    const void* entries;  ///< code addresses by pc - $8000
    Machine* machine;
    Console* console;

    // Called through the shared code; `cycle` is that of the access.
    u32 (*read)(Context*, u32 addr, u32 unused, i64 cycle);
    /// Returns the cycles the CPU stands still.
    u32 (*write)(Context*, u32 addr, u32 value, i64 cycle);
    /// The same with the read of that address that comes before a write through an index.
    u32 (*write_indexed)(Context*, u32 addr, u32 value, i64 cycle);
    /// Returns cycles to pass over at the head of a loop that polls the PPU status: its address is in the
    /// high half of `loop`, the cycles of a turn in the low half. `a` is the accumulator.
    u32 (*skip_polls)(Context*, u32 loop, u32 a, i64 clock);
};

}  // namespace wz::jit
