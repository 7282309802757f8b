#include "nes/jit_x64_lower.hpp"

#if defined(__x86_64__)

namespace wz::jit::x64 {

using HostCarry = FlagState::HostCarry;
using Nz = FlagState::Nz;

namespace {
Reg reg_of(Cpu r) {
    constexpr Reg regs[] = {kRegA, kRegX, kRegY, kRegS};
    return regs[static_cast<int>(r)];
}
}  // namespace

void X64Lowering::alu(Alu op, Reg to, const Operand& o) {
    switch (o.kind) {
        case Operand::Kind::Immediate:
            a_.alu8(op, to, o.imm);
            break;
        case Operand::Kind::Memory:
            a_.alu8(op, to, o.mem);
            break;
        case Operand::Kind::Register:
            a_.alu8(op, to, o.reg);
            break;
    }
    f_.clobber_host();
}

void X64Lowering::load(Cpu cpu, const Step& s) {
    const Reg to = reg_of(cpu);
    const Operand o = operand(s);
    switch (o.kind) {
        case Operand::Kind::Immediate:
            a_.mov32(to, o.imm);
            break;
        case Operand::Kind::Memory:
            a_.movzx8(to, o.mem);
            break;
        case Operand::Kind::Register:
            a_.mov32(to, o.reg);
            break;
    }
    f_.host_nz = false;
    set_nz(to);
    leave_if_limit_moved(s);
}

void X64Lowering::store(Cpu cpu, const Step& s) {
    const Reg from = reg_of(cpu);
    switch (s.access) {
        case Access::Ram:
            a_.mov8(ram_operand(s), from);
            return;
        case Access::Pointer:
            a_.mov8(pointer_operand(s).mem, from);
            return;
        case Access::Register:
            a_.mov32(kT0, s.operand);
            a_.mov32(kT1, from);
            call(runtime_.write, s.start + 3);
            break;
        default:
            register_address(s);
            a_.mov32(kT1, from);
            call(runtime_.write_indexed, s.start + 3);
    }
    a_.alu64(kSub, kRemaining, kT0);
    leave_if_limit_moved(s);
}

void X64Lowering::arithmetic(const Step& s) {
    const Operand o = operand(s);
    switch (s.op) {
        case Op::Ora:
            alu(kOr, kRegA, o);
            break;
        case Op::And:
            alu(kAnd, kRegA, o);
            break;
        case Op::Eor:
            alu(kXor, kRegA, o);
            break;
        default: {
            // The host subtracts a borrow where the 6502 adds a carry.
            const bool add = s.op == Op::Adc;
            const HostCarry sense = add ? HostCarry::Same : HostCarry::Inverted;
            if (f_.carry_value == (add ? 0 : 1)) {
                alu(add ? kAdd : kSub, kRegA, o);
            } else {
                carry_to_host(sense);
                alu(add ? kAdc : kSbb, kRegA, o);
            }
            carry_from_host(s, sense);
            if (s.needed & kV) a_.setcc(kO, kOverflow);
        }
    }
    set_nz(kRegA);
    f_.host_nz = true;
    leave_if_limit_moved(s);
}

void X64Lowering::compare(Cpu cpu, const Step& s) {
    const Reg reg = reg_of(cpu);
    const Operand o = operand(s);
    if (o.kind == Operand::Kind::Immediate || !(s.needed & kNZ)) {
        alu(kCmp, reg, o);
        f_.nz = Nz::Compare;
        f_.nz_reg = reg;
        f_.nz_imm = o.imm;
    } else {
        a_.mov32(kRegNz, reg);
        alu(kSub, kRegNz, o);
        set_nz_in_place();
    }
    f_.host_nz = true;
    carry_from_host(s, HostCarry::Inverted);
    leave_if_limit_moved(s);
}

void X64Lowering::bit(const Step& s) {
    const Operand o = operand(s);
    switch (o.kind) {
        case Operand::Kind::Immediate:
            a_.mov32(kT0, o.imm);
            break;
        case Operand::Kind::Memory:
            a_.movzx8(kT0, o.mem);
            break;
        case Operand::Kind::Register:
            break;
    }
    if (s.needed & kV) {
        a_.bt32(kT0, 6);
        a_.setcc(kB, kOverflow);
    }
    a_.mov32(kRegNz, kT0);
    a_.shl32(kRegNz, 8);
    a_.alu32(kAnd, kT0, kRegA);
    a_.alu32(kOr, kRegNz, kT0);
    f_.clobber_host();
    f_.nz = Nz::InPlace;
    f_.nz_plain = false;
    leave_if_limit_moved(s);
}

void X64Lowering::modify_byte(const Step& s, Reg r) {
    bool host_nz = true;
    switch (s.op) {
        case Op::Asl:
            a_.alu8(kAdd, r, r);
            break;
        case Op::Lsr:
            a_.shift8(kShr, r);
            break;
        case Op::Rol:
            carry_to_host(HostCarry::Same);
            a_.alu8(kAdc, r, r);
            break;
        case Op::Ror:
            carry_to_host(HostCarry::Same);
            a_.shift8(kRcr, r);
            host_nz = false;
            break;
        case Op::Inc:
            a_.inc8(r);
            break;
        default:
            a_.dec8(r);
            break;
    }
    f_.clobber_host();
    f_.host_nz = host_nz;
    if (s.op != Op::Inc && s.op != Op::Dec) carry_from_host(s, HostCarry::Same);
}

void X64Lowering::modify(const Step& s) {
    if (s.mode == Mode::Accumulator) {
        modify_byte(s, kRegA);
        return set_nz(kRegA);
    }
    const Mem at = ram_operand(s);
    if (!(s.needed & kNZ) && (s.op == Op::Inc || s.op == Op::Dec)) {
        if (s.op == Op::Inc)
            a_.inc8(at);
        else
            a_.dec8(at);
        f_.clobber_host();
        f_.host_nz = true;
        return;
    }
    a_.movzx8(kRegNz, at);
    modify_byte(s, kRegNz);
    a_.mov8(at, kRegNz);
    set_nz_in_place();
}

void X64Lowering::transfer(Cpu to, Cpu from, bool sets_flags) {
    a_.mov32(reg_of(to), reg_of(from));
    if (!sets_flags) return;
    f_.host_nz = false;
    set_nz(reg_of(to));
}

void X64Lowering::count(const Step& s, Cpu cpu, u8 times) {
    const Reg r = reg_of(cpu);
    const bool up = s.op == Op::Inx || s.op == Op::Iny;
    if (times > 1) {
        a_.alu8(up ? kAdd : kSub, r, times);
        f_.clobber_host();
    } else if (up) {
        a_.inc8(r);  // the host's carry survives
    } else {
        a_.dec8(r);
    }
    set_nz(r);
    f_.host_nz = true;
}

void X64Lowering::shift(const Step& s, u8 times) {
    set_nz(kRegA);
    if (times == 1) return modify_byte(s, kRegA);
    a_.shift8(s.op == Op::Asl ? kShl : kShr, kRegA, times);
    f_.host_nz = true;
    carry_from_host(s, HostCarry::Same);
}

void X64Lowering::set_carry(bool value) {
    f_.carry_value = value;
    f_.carry_in_place = false;
    f_.host_carry = HostCarry::None;
}

void X64Lowering::clear_overflow() { a_.mov32(kOverflow, u32{0}); }

void X64Lowering::set_decimal(bool value) {
    constexpr u8 decimal = 8;
    const Mem p = machine(offsetof(Machine, p));
    if (value)
        a_.alu8(kOr, p, decimal);
    else
        a_.alu8(kAnd, p, static_cast<u8>(~decimal));
    f_.clobber_host();
}

void X64Lowering::push_a() {
    a_.mov8(ram(kRegS, 0x100), kRegA);
    a_.dec8(kRegS);
    f_.clobber_host();
}

void X64Lowering::pull_a() {
    a_.inc8(kRegS);
    a_.movzx8(kRegA, ram(kRegS, 0x100));
    f_.clobber_host();
    set_nz(kRegA);
}

/// The host's condition under which the branch is taken; emits a test where no flag of the host says it.
Cond X64Lowering::branch_condition(Op op) {
    if (op == Op::Bcc || op == Op::Bcs) {
        Cond set;
        if (f_.host_carry == HostCarry::None) {
            place_flags(kC);
            a_.test8(kCarry, kCarry);
            f_.clobber_host();
            set = kNE;
        } else {
            set = f_.host_carry == HostCarry::Same ? kB : kAE;
        }
        return op == Op::Bcs ? set : negated(set);
    }
    if (op == Op::Bvc || op == Op::Bvs) {
        a_.test8(kOverflow, kOverflow);
        f_.clobber_host();
        return op == Op::Bvs ? kNE : kE;
    }
    const bool sign = op == Op::Bpl || op == Op::Bmi, plain = f_.nz != Nz::InPlace || f_.nz_plain;
    if (sign && !f_.host_nz && !plain) {
        a_.test32(kRegNz, 0x8080);
        f_.clobber_host();
        return op == Op::Bmi ? kNE : kE;
    }
    if (!f_.host_nz) {
        if (f_.nz == Nz::Compare) {
            a_.alu8(kCmp, f_.nz_reg, f_.nz_imm);
        } else {
            const Reg r = f_.nz == Nz::Value ? f_.nz_reg : kRegNz;
            a_.test8(r, r);
        }
        f_.clobber_host();
        f_.host_nz = plain;
    }
    if (sign) return op == Op::Bmi ? kS : kNS;
    return op == Op::Beq ? kE : kNE;
}

void X64Lowering::branch(const Step& s, Label to, bool jump_if_taken, FlagState& on_taken) {
    const Cond taken = branch_condition(s.op);
    a_.jcc(jump_if_taken ? taken : negated(taken), to);
    on_taken = f_;
    if (s.op == Op::Bcc || s.op == Op::Bcs) {
        on_taken.carry_value = s.op == Op::Bcs;
        f_.carry_value = s.op == Op::Bcc;
    }
}

void X64Lowering::jsr(const Step& s) {
    const u16 back = static_cast<u16>(s.pc + 2);
    // Both bytes at once, unless the stack wraps around; so a matching Rts need not look.
    a_.alu8(kCmp, kRegS, u8{2});
    f_.clobber_host();
    a_.jcc(kB, cold_exit(s.pc, Exit::Interpret, s.start));
    a_.mov16(ram(kRegS, 0x100 - 1), back);
    a_.alu8(kSub, kRegS, u8{2});
}

void X64Lowering::rts(const Step& s) {
    const Label elsewhere = cold_exit(s.pc, Exit::Interpret, s.start);
    f_.clobber_host();
    if (s.inlined) {
        a_.alu16(kCmp, ram(kRegS, 0x101), static_cast<u16>(s.target - 1));
        a_.jcc(kNE, elsewhere);
        a_.alu8(kAdd, kRegS, u8{2});
        return;
    }
    a_.alu8(kCmp, kRegS, u8{0xFD});
    a_.jcc(kA, elsewhere);
    a_.movzx16(kT0, ram(kRegS, 0x101));
    a_.alu32(kSub, kT0, 0x7FFF);
    a_.alu32(kCmp, kT0, 0x8000);
    a_.jcc(kAE, elsewhere);
    a_.alu8(kAdd, kRegS, u8{2});
    jump_to_entry(s.end);
}

void X64Lowering::jmp_indirect(const Step& s) {
    a_.movzx8(kT0, ram(s.operand));
    // The pointer's high byte comes from the same page.
    a_.movzx8(kT1, ram((s.operand & 0xFF00u) | ((s.operand + 1u) & 0xFF)));
    a_.shl32(kT1, 8);
    a_.alu32(kOr, kT0, kT1);
    a_.alu32(kSub, kT0, 0x8000);
    a_.alu32(kCmp, kT0, 0x8000);
    f_.clobber_host();
    a_.jcc(kAE, cold_exit(s.pc, Exit::Interpret, s.start));
    jump_to_entry(s.end);
}

}  // namespace wz::jit::x64
#endif
