#pragma once
#include <cstddef>

#include "nes/jit_context.hpp"
#include "nes/jit_x64_emitter.hpp"

/// Where translated code keeps the 6502. All values are zero-extended, so that X and Y index memory as they
/// are.
namespace wz::jit::x64 {

inline constexpr Reg kRegA = rax, kRegX = rcx, kRegY = rdx, kRegS = r11;
inline constexpr Reg kRegNz = rbx;                  ///< as in Context::nz
inline constexpr Reg kCarry = r9, kOverflow = r10;  ///< 0 or 1
inline constexpr Reg kRemaining = r13;              ///< cycles until the limit, as of the trace's head
inline constexpr Reg kRam = rbp, kPrg = r8, kEntries = r12, kContext = r14;
inline constexpr Reg kT0 = rsi, kT1 = rdi, kT2 = r15;  ///< scratch; arguments of the shared code

/// A byte of RAM at a known address.
inline Mem ram(u32 addr) { return {kRam, static_cast<i32>(addr & 0x7FF) - kRamBias}; }
/// The byte at `offset` from a register that holds an address within RAM.
inline Mem ram(Reg at, i32 offset = 0) { return {kRam, offset - kRamBias, at}; }
/// A member of the Machine whose RAM is at hand.
inline Mem machine(std::size_t offset) {
    return {kRam, static_cast<i32>(offset) - static_cast<i32>(offsetof(Machine, ram)) - kRamBias};
}
inline Mem context(std::size_t offset) { return {kContext, static_cast<i32>(offset)}; }

}  // namespace wz::jit::x64
