#pragma once
#include "nes/bus.hpp"

namespace wz::cpu {

enum Flag : u8 {
    kCarry = 1,
    kZero = 2,
    kInterrupt = 4,
    kDecimal = 8,
    kBreak = 16,
    kUnused = 32,
    kOverflow = 64,
    kNegative = 128
};

/// Runs instructions until `m.limit`, leaving the machine at an instruction boundary with `m.tail` set.
/// With SkipIdle, loops that only wait are passed over by whole iterations: the same state, cycle for cycle.
template <bool SkipIdle>
void execute(Console& k);

/// The seven-cycle sequence that enters an interrupt handler.
void enter_interrupt(Machine& m, const Cartridge& c, u16 vector);

}  // namespace wz::cpu
