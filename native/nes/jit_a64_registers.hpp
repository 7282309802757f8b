#pragma once
#include <cstddef>

#include "nes/jit_a64_emitter.hpp"
#include "nes/jit_context.hpp"

/// Where translated code keeps the 6502: in registers that calls preserve. All values are zero-extended.
namespace wz::jit::a64 {

inline constexpr Reg kRegA = r19, kRegX = r20, kRegY = r21, kRegS = r22;
inline constexpr Reg kRegNz = r23;                   ///< as in Context::nz
inline constexpr Reg kCarry = r24, kOverflow = r25;  ///< 0 or 1
inline constexpr Reg kRemaining = r26;               ///< cycles until the limit, as of the trace's head
inline constexpr Reg kRam = r27, kContext = r28;
inline constexpr Reg kEntries = r14, kPrg = r15;              ///< restored after calls
inline constexpr Reg kT0 = r1, kT1 = r2, kT2 = r3;            ///< scratch; arguments of the shared code
inline constexpr Reg kAddress = r4, kValue = r6, kTemp = r7;  ///< scratch

}  // namespace wz::jit::a64
