#include "nes/jit_backend.hpp"

#if defined(__x86_64__)
#include "nes/jit_x64_registers.hpp"

namespace wz::jit {
using namespace x64;
namespace {

constexpr Reg kCalleeSaved[] = {rbx, rbp, r12, r13, r14, r15};

struct Slot {
    Reg reg;
    std::size_t offset;
};
/// The 6502's state, register by register, and where the Context keeps it.
constexpr Slot kState[] = {{kRegA, offsetof(Context, a)},           {kRegX, offsetof(Context, x)},
                           {kRegY, offsetof(Context, y)},           {kRegS, offsetof(Context, s)},
                           {kRegNz, offsetof(Context, nz)},         {kCarry, offsetof(Context, carry)},
                           {kOverflow, offsetof(Context, overflow)}};

/// Code that calls a function of the Context. Takes its second argument in kT0, its third in kT1 and the
/// cycle, counted from the trace's head, in kT2; leaves the result in kT0 and everything but kT1, kT2 and the
/// flags as it was.
u32 emit_call(Assembler& a, std::size_t function) {
    a.align(16);
    const u32 place = a.here();
    // What a callee may destroy; the rest of the state is in registers it must preserve.
    const Slot saved[] = {kState[0], kState[1], kState[2], kState[3], kState[5], kState[6]};
    for (const Slot& s : saved) a.mov32(context(s.offset), s.reg);
    a.mov64(rdx, kT1);
    a.mov64(rcx, context(offsetof(Context, limit)));
    a.alu64(kSub, rcx, kRemaining);
    a.alu64(kAdd, rcx, kT2);
    a.mov64(rdi, kContext);
    a.alu64(kSub, rsp, 8);
    a.call(context(function));
    a.alu64(kAdd, rsp, 8);
    a.mov32(kT0, rax);
    for (const Slot& s : saved) a.mov32(s.reg, context(s.offset));
    a.mov64(kPrg, context(offsetof(Context, prg)));
    a.ret();
    return place;
}

}  // namespace

std::vector<u8> emit_runtime(u32 origin, Runtime& places) {
    Assembler a(origin);
    places.enter = a.here();
    for (Reg r : kCalleeSaved) a.push(r);
    a.alu64(kSub, rsp, 8);
    a.mov64(kContext, rdi);
    a.mov64(kT2, rsi);
    for (const Slot& s : kState) a.mov32(s.reg, context(s.offset));
    a.mov64(kRemaining, context(offsetof(Context, remaining)));
    a.mov64(kRam, context(offsetof(Context, ram)));
    a.mov64(kPrg, context(offsetof(Context, prg)));
    a.mov64(kEntries, context(offsetof(Context, entries)));
    a.jmp(kT2);

    // From a jump to a computed address: kT0 is pc - $8000.
    a.align(16);
    places.unknown = a.here();
    a.alu32(kAdd, kT0, 0x8000);
    a.mov32(kT1, static_cast<u32>(Exit::Unknown));
    // kT0 is the pc, kT1 the Exit.
    places.exit = a.here();
    for (const Slot& s : kState) a.mov32(context(s.offset), s.reg);
    a.mov64(context(offsetof(Context, remaining)), kRemaining);
    a.mov32(context(offsetof(Context, pc)), kT0);
    a.mov32(context(offsetof(Context, exit)), kT1);
    a.alu64(kAdd, rsp, 8);
    for (int i = std::size(kCalleeSaved); i-- > 0;) a.pop(kCalleeSaved[i]);
    a.ret();

    places.read = emit_call(a, offsetof(Context, read));
    places.write = emit_call(a, offsetof(Context, write));
    places.write_indexed = emit_call(a, offsetof(Context, write_indexed));
    places.skip_polls = emit_call(a, offsetof(Context, skip_polls));
    a.resolve();
    return a.code();
}

}  // namespace wz::jit
#endif
