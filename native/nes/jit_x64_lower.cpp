#include "nes/jit_x64_lower.hpp"

#if defined(__x86_64__)

namespace wz::jit::x64 {

using HostCarry = FlagState::HostCarry;
using Nz = FlagState::Nz;

// ---- exits ----

void X64Lowering::check_remaining(int cost, Label otherwise) {
    a_.alu64(kCmp, kRemaining, cost);
    a_.jcc(kLE, otherwise);
}

void X64Lowering::spend(int cycles) {
    a_.alu64(kSub, kRemaining, cycles);
    f_.clobber_host();
}

void X64Lowering::skip_polls(u16 loop, int turn) {
    a_.mov32(kT0, u32{loop} << 16 | static_cast<u32>(turn));
    a_.mov32(kT1, kRegA);
    call(runtime_.skip_polls, 0);
    a_.alu64(kSub, kRemaining, kT0);
}

void X64Lowering::jump(const Target& to, Label otherwise) {
    a_.alu64(kCmp, kRemaining, to.cost);
    a_.jcc(kG, to.label);
    a_.jmp(otherwise);
}

void X64Lowering::exit(u16 pc, Exit why) {
    a_.mov32(kT0, pc);
    a_.mov32(kT1, static_cast<u32>(why));
    a_.jmp(shared(runtime_.exit));
}

/// kT0 is the address to go to, in PRG ROM, less $8000.
void X64Lowering::jump_to_entry(int cycles) {
    place_flags(kAllFlags);
    spend(cycles);
    a_.jmp(Mem{kEntries, 0, kT0, 3});
}

// ---- flags ----

void X64Lowering::place_flags(u8 which) {
    if ((which & kNZ) && f_.nz != Nz::InPlace) {
        a_.mov32(kRegNz, f_.nz_reg);
        if (f_.nz == Nz::Compare) {
            a_.alu8(kSub, kRegNz, f_.nz_imm);
            f_.clobber_host();
        }
        set_nz_in_place();
    }
    if ((which & kC) && !f_.carry_in_place) {
        a_.mov32(kCarry, static_cast<u32>(f_.carry_value));
        f_.carry_in_place = true;
    }
}

void X64Lowering::set_nz(Reg r) {
    f_.nz = Nz::Value;
    f_.nz_reg = r;
}
void X64Lowering::set_nz_in_place() {
    f_.nz = Nz::InPlace;
    f_.nz_plain = true;
}

/// The step's carry is in the host's, or the opposite of it.
void X64Lowering::carry_from_host(const Step& s, HostCarry sense) {
    f_.host_carry = sense;
    f_.carry_value = -1;
    f_.carry_in_place = true;
    if (s.needed & kC) a_.setcc(sense == HostCarry::Same ? kB : kAE, kCarry);
}

void X64Lowering::carry_to_host(HostCarry sense) {
    if (f_.host_carry == sense) return;
    if (f_.host_carry != HostCarry::None) {
        a_.cmc();
    } else if (f_.carry_value >= 0) {
        if ((f_.carry_value == 1) == (sense == HostCarry::Same))
            a_.stc();
        else
            a_.clc();
    } else if (sense == HostCarry::Same) {
        a_.bt32(kCarry, 0);
    } else {
        a_.alu8(kCmp, kCarry, u8{1});
    }
}

// ---- operands ----

/// Gives back the cycle that was counted for leaving the page where the index stays within it.
void X64Lowering::pay_for_crossing(Reg index, u8 low) {
    a_.alu8(kCmp, index, static_cast<u8>(0x100 - low));
    a_.alu64(kAdc, kRemaining, 0);
    f_.clobber_host();
}

Mem X64Lowering::ram_operand(const Step& s) {
    if (s.mode == Mode::Zp || s.mode == Mode::Abs) return ram(s.operand);
    const Reg index = s.mode == Mode::ZpX || s.mode == Mode::AbsX ? kRegX : kRegY;
    if (s.mode == Mode::ZpX || s.mode == Mode::ZpY) {
        a_.lea32(kT0, Mem{index, s.operand});
        a_.movzx8(kT0, kT0);
        return ram(kT0);
    }
    if (s.pays_for_crossing()) pay_for_crossing(index, static_cast<u8>(s.operand));
    if ((s.operand & 0x7FF) <= 0x700) return ram(index, s.operand & 0x7FF);
    a_.lea32(kT0, Mem{index, s.operand & 0x7FF});
    a_.alu32(kAnd, kT0, 0x7FF);
    f_.clobber_host();
    return ram(kT0);
}

Operand X64Lowering::pointer_operand(const Step& s) {
    const Label rom = a_.label(), join = a_.label();
    const Label slow = cold_exit(s.pc, Exit::Interpret, s.start);
    a_.movzx8(kT0, ram(s.operand));
    a_.movzx8(kT1, ram(static_cast<u8>(s.operand + 1)));
    a_.alu32(kAdd, kT0, kRegY);
    if (s.pays_for_crossing()) a_.mov32(kT2, kT0);
    a_.shl32(kT1, 8);
    a_.alu32(kAdd, kT0, kT1);
    a_.alu32(kCmp, kT0, 0x2000);
    f_.clobber_host();
    Operand o;
    if (is_store(s.op)) {
        a_.jcc(kAE, slow);
        a_.alu32(kAnd, kT0, 0x7FF);
        o.kind = Operand::Kind::Memory;
        o.mem = ram(kT0);
        return o;
    }
    a_.jcc(kAE, rom);
    a_.alu32(kAnd, kT0, 0x7FF);
    a_.movzx8(kT0, ram(kT0));
    a_.jmp(join);
    a_.bind(rom);
    a_.alu32(kSub, kT0, 0x8000);
    a_.alu32(kCmp, kT0, 0x8000);
    a_.jcc(kAE, slow);
    a_.movzx8(kT0, Mem{kPrg, 0, kT0});
    a_.bind(join);
    a_.alu32(kCmp, kT2, 0x100);
    a_.alu64(kAdc, kRemaining, 0);
    o.kind = Operand::Kind::Register;
    o.reg = kT0;
    return o;
}

void X64Lowering::call(u32 place, int cycle) {
    a_.mov32(kT2, static_cast<u32>(cycle));
    a_.call(shared(place));
    f_.clobber_host();
}

/// The operand of an instruction that reads. Register accesses happen here.
Operand X64Lowering::operand(const Step& s) {
    Operand o;
    switch (s.access) {
        case Access::Ram:
            o.kind = Operand::Kind::Memory;
            o.mem = ram_operand(s);
            return o;
        case Access::Rom:
            if (s.mode == Mode::Abs) {
                o.imm = prg_[s.operand & 0x7FFF];
                return o;
            }
            o.kind = Operand::Kind::Memory;
            {
                const Reg index = s.mode == Mode::AbsX ? kRegX : kRegY;
                if (s.may_wrap()) leave_unless_below(index, static_cast<u8>(0x100 - (s.operand & 0xFF)), s);
                if (s.pays_for_crossing()) pay_for_crossing(index, static_cast<u8>(s.operand));
                o.mem = {kPrg, s.operand - 0x8000, index};
            }
            return o;
        case Access::Register:
            a_.mov32(kT0, s.operand);
            call(runtime_.read, s.start + 3);
            break;
        case Access::RegisterIndexed:
            register_address(s);
            call(runtime_.read, s.start + 3);
            break;
        case Access::Pointer:
            return pointer_operand(s);
        case Access::None:
            o.imm = static_cast<u8>(s.operand);
            return o;
    }
    o.kind = Operand::Kind::Register;
    o.reg = kT0;
    return o;
}

/// The interpreter does the step if the index is `bound` or more.
void X64Lowering::leave_unless_below(Reg index, u8 bound, const Step& s) {
    a_.alu8(kCmp, index, bound);
    f_.clobber_host();
    a_.jcc(kAE, cold_exit(s.pc, Exit::Interpret, s.start));
}

/// kT0 becomes the address of an indexed register access that stays within its page.
void X64Lowering::register_address(const Step& s) {
    const Reg index = s.mode == Mode::AbsX ? kRegX : kRegY;
    if (s.operand & 0xFF) leave_unless_below(index, static_cast<u8>(0x100 - (s.operand & 0xFF)), s);
    a_.lea32(kT0, Mem{index, s.operand});
}

void X64Lowering::leave_if_limit_moved(const Step& s) {
    if (s.access != Access::Register && s.access != Access::RegisterIndexed) return;
    a_.mov64(kT1, context(offsetof(Context, limit)));
    a_.alu64(kCmp, kT1, machine(offsetof(Machine, limit)));
    f_.clobber_host();
    a_.jcc(kNE, cold_exit(s.next(), Exit::LimitMoved, s.end));
}

}  // namespace wz::jit::x64

namespace wz::jit {

std::vector<u8> emit_traces(u32 origin, const Runtime& runtime, const Prg& prg,
                            const std::vector<Trace>& traces, const Blocks& known,
                            std::vector<Block>& blocks) {
    x64::Assembler a(origin);
    x64::X64Lowering(a, runtime, prg, traces, known).run(blocks);
    return a.code();
}

}  // namespace wz::jit
#endif
