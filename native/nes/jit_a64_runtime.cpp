#include "nes/jit_backend.hpp"

#if defined(__aarch64__)
#include "nes/jit_a64_registers.hpp"

namespace wz::jit {
using namespace a64;
namespace {

struct Slot {
    Reg reg;
    std::size_t offset;
};
/// The 6502's state, register by register, and where the Context keeps it.
constexpr Slot kState[] = {{kRegA, offsetof(Context, a)},           {kRegX, offsetof(Context, x)},
                           {kRegY, offsetof(Context, y)},           {kRegS, offsetof(Context, s)},
                           {kRegNz, offsetof(Context, nz)},         {kCarry, offsetof(Context, carry)},
                           {kOverflow, offsetof(Context, overflow)}};

void load_tables(Assembler& a) {
    a.ldr64(kPrg, kContext, offsetof(Context, prg));
    a.ldr64(kEntries, kContext, offsetof(Context, entries));
}

/// Code that calls a function of the Context. Takes its second argument in kT0, its third in kT1 and the
/// cycle, counted from the trace's head, in kT2; leaves the result in kT0 and destroys every scratch
/// register.
u32 emit_call(Assembler& a, u32 function) {
    a.align(16);
    const u32 place = a.here();
    a.push(r29, r30);
    a.ldr64(kTemp, kContext, offsetof(Context, limit));
    a.sub64(kTemp, kTemp, kRemaining);
    a.add64(kT2, kT2, kTemp);
    a.mov64(r0, kContext);
    a.ldr64(kTemp, kContext, function);
    a.blr(kTemp);
    a.mov(kT0, r0);
    load_tables(a);
    a.pop(r29, r30);
    a.ret();
    return place;
}

}  // namespace

std::vector<u8> emit_runtime(u32 origin, Runtime& places) {
    Assembler a(origin);
    places.enter = a.here();
    a.push(r29, r30);
    for (u8 r = r19; r <= r27; r += 2) a.push(static_cast<Reg>(r), static_cast<Reg>(r + 1));
    a.mov64(kContext, r0);
    for (const Slot& s : kState) a.ldr32(s.reg, kContext, static_cast<u32>(s.offset));
    a.ldr64(kRemaining, kContext, offsetof(Context, remaining));
    a.ldr64(kRam, kContext, offsetof(Context, ram));
    a.sub64(kRam, kRam, kRamBias);
    load_tables(a);
    a.br(r1);

    // From a jump to a computed address: kT0 is pc - $8000.
    a.align(16);
    places.unknown = a.here();
    a.add(kT0, kT0, 0x8000);
    a.mov(kT1, static_cast<u32>(Exit::Unknown));
    // kT0 is the pc, kT1 the Exit.
    places.exit = a.here();
    for (const Slot& s : kState) a.str32(s.reg, kContext, static_cast<u32>(s.offset));
    a.str64(kRemaining, kContext, offsetof(Context, remaining));
    a.str32(kT0, kContext, offsetof(Context, pc));
    a.str32(kT1, kContext, offsetof(Context, exit));
    for (u8 r = r27; r >= r19; r -= 2) a.pop(static_cast<Reg>(r), static_cast<Reg>(r + 1));
    a.pop(r29, r30);
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
