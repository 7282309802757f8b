#include "nes/jit_a64_lower.hpp"

#if defined(__aarch64__)

namespace wz::jit::a64 {

using Nz = FlagState::Nz;

namespace {
Reg reg_of(Cpu r) {
    constexpr Reg regs[] = {kRegA, kRegX, kRegY, kRegS};
    return regs[static_cast<int>(r)];
}
}  // namespace

void A64Lowering::load(Cpu cpu, const Step& s) {
    const Reg to = reg_of(cpu);
    if (s.access == Access::Ram)
        read(to, ram_operand(s));
    else if (s.access == Access::Rom && s.mode != Mode::Abs)
        read(to, rom_operand(s));
    else if (s.access == Access::None)
        a_.mov(to, s.operand);
    else
        a_.mov(to, operand(s));
    set_nz(to);
    leave_if_limit_moved(s);
}

void A64Lowering::store(Cpu cpu, const Step& s) {
    const Reg from = reg_of(cpu);
    if (s.access == Access::Ram) return write(from, ram_operand(s));
    if (s.access == Access::Pointer) return write(from, pointer_operand(s));
    if (s.access == Access::Register)
        a_.mov(kT0, s.operand);
    else
        register_address(s);
    a_.mov(kT1, from);
    call(s.access == Access::Register ? runtime_.write : runtime_.write_indexed, s.start + 3);
    a_.sub64(kRemaining, kRemaining, kT0);
    leave_if_limit_moved(s);
}

void A64Lowering::add_with_carry(const Step& s, Reg value) {
    a_.add(kTemp, kRegA, value);
    if (f_.carry_value == 1)
        a_.add(kTemp, kTemp, 1u);
    else if (f_.carry_value < 0)
        a_.add(kTemp, kTemp, kCarry);
    if (s.needed & kV) {
        // Both operands differ from the result in sign.
        a_.logic(kEor, kT1, kRegA, kTemp);
        a_.logic(kEor, kT2, value, kTemp);
        a_.logic(kAnd, kT1, kT1, kT2);
        a_.bits(kOverflow, kT1, 7, 1);
    }
    if (s.needed & kC) a_.bits(kCarry, kTemp, 8, 1);
    set_carry_in_place();
    a_.byte(kRegA, kTemp);
}

void A64Lowering::arithmetic(const Step& s) {
    const Reg value = operand(s);
    switch (s.op) {
        case Op::Ora:
            a_.logic(kOrr, kRegA, kRegA, value);
            break;
        case Op::And:
            a_.logic(kAnd, kRegA, kRegA, value);
            break;
        case Op::Eor:
            a_.logic(kEor, kRegA, kRegA, value);
            break;
        case Op::Sbc:
            a_.eor_low(value, value, 8);
            [[fallthrough]];
        default:
            add_with_carry(s, value);
    }
    set_nz(kRegA);
    leave_if_limit_moved(s);
}

void A64Lowering::compare(Cpu cpu, const Step& s) {
    const Reg reg = reg_of(cpu);
    if (s.access == Access::None) {
        a_.cmp(reg, u32{s.operand});
        f_.nz = Nz::Compare;
        f_.nz_reg = reg;
        f_.nz_imm = static_cast<u8>(s.operand);
    } else {
        const Reg value = operand(s);
        a_.subs(kTemp, reg, value);
        a_.byte(kRegNz, kTemp);
        set_nz_in_place();
    }
    if (s.needed & kC) a_.cset(kCarry, kHs);
    set_carry_in_place();
    f_.host_compared = true;
    leave_if_limit_moved(s);
}

void A64Lowering::bit(const Step& s) {
    const Reg value = operand(s);
    if (s.needed & kV) a_.bits(kOverflow, value, 6, 1);
    a_.logic(kAnd, kRegNz, kRegA, value);
    a_.logic(kOrr, kRegNz, kRegNz, value, 8);
    f_.nz = Nz::InPlace;
    f_.nz_plain = false;
    f_.host_compared = false;
    leave_if_limit_moved(s);
}

/// The result goes to `to`; `from` is destroyed.
void A64Lowering::modify_byte(const Step& s, Reg to, Reg from) {
    const bool rotates = s.op == Op::Rol || s.op == Op::Ror, left = s.op == Op::Asl || s.op == Op::Rol;
    if (s.op == Op::Inc || s.op == Op::Dec) {
        if (s.op == Op::Inc)
            a_.add(from, from, 1u);
        else
            a_.sub(from, from, 1u);
        return a_.byte(to, from);
    }
    if (rotates) place_flags(kC);
    if (s.needed & kC) a_.bits(kTemp, from, left ? 7 : 0, 1);
    if (left)
        a_.bits_left(to, from, 1, 7);
    else
        a_.shr(to, from, 1);
    if (rotates) a_.logic(kOrr, to, to, kCarry, left ? 0 : 7);
    if (s.needed & kC) a_.mov(kCarry, kTemp);
    set_carry_in_place();
    f_.host_compared = false;
}

void A64Lowering::modify(const Step& s) {
    if (s.mode == Mode::Accumulator) {
        modify_byte(s, kRegA, kRegA);
        return set_nz(kRegA);
    }
    const Place at = ram_operand(s);
    read(kValue, at);
    modify_byte(s, kRegNz, kValue);
    write(kRegNz, at);
    set_nz_in_place();
    f_.host_compared = false;
}

void A64Lowering::transfer(Cpu to, Cpu from, bool sets_flags) {
    a_.mov(reg_of(to), reg_of(from));
    if (sets_flags) set_nz(reg_of(to));
}

void A64Lowering::count(const Step& s, Cpu cpu, u8 times) {
    const Reg r = reg_of(cpu);
    if (s.op == Op::Inx || s.op == Op::Iny)
        a_.add(r, r, u32{times});
    else
        a_.sub(r, r, u32{times});
    a_.byte(r, r);
    set_nz(r);
}

void A64Lowering::shift(const Step& s, u8 times) {
    const u32 n = times;
    if (s.needed & kC) a_.bits(kCarry, kRegA, s.op == Op::Asl ? 8 - n : n - 1, 1);
    if (s.op == Op::Asl)
        a_.bits_left(kRegA, kRegA, n, 8 - n);
    else
        a_.shr(kRegA, kRegA, n);
    set_carry_in_place();
    set_nz(kRegA);
}

void A64Lowering::set_carry(bool value) {
    f_.carry_value = value;
    f_.carry_in_place = false;
    f_.host_compared = false;
}

void A64Lowering::clear_overflow() { a_.mov(kOverflow, u32{0}); }

void A64Lowering::set_decimal(bool value) {
    constexpr u32 decimal = 8;
    a_.ldr64(kAddress, kContext, offsetof(Context, machine));
    a_.ldrb(kValue, kAddress, u32{offsetof(Machine, p)});
    a_.mov(kTemp, decimal);
    a_.logic(kOrr, kValue, kValue, kTemp);
    if (!value) a_.logic(kEor, kValue, kValue, kTemp);
    a_.strb(kValue, kAddress, u32{offsetof(Machine, p)});
}

void A64Lowering::push_a() {
    a_.add_index(kAddress, kRam, kRegS);
    a_.strb(kRegA, kAddress, 0x100u);
    a_.sub(kRegS, kRegS, 1u);
    a_.byte(kRegS, kRegS);
}

void A64Lowering::pull_a() {
    a_.add(kRegS, kRegS, 1u);
    a_.byte(kRegS, kRegS);
    a_.add_index(kAddress, kRam, kRegS);
    a_.ldrb(kRegA, kAddress, 0x100u);
    set_nz(kRegA);
}

void A64Lowering::jump_on_zero(Label to, bool when_zero) {
    if (f_.host_compared) return a_.b(when_zero ? kEq : kNe, to);
    Reg r = f_.nz == Nz::Value ? f_.nz_reg : kRegNz;
    if (f_.nz == Nz::Compare) {
        a_.cmp(f_.nz_reg, u32{f_.nz_imm});
        return a_.b(when_zero ? kEq : kNe, to);
    }
    if (f_.nz == Nz::InPlace && !f_.nz_plain) {
        a_.byte(kTemp, kRegNz);
        r = kTemp;
    }
    if (when_zero)
        a_.cbz(r, to);
    else
        a_.cbnz(r, to);
}

void A64Lowering::jump_on_sign(Label to, bool when_negative) {
    Reg r = f_.nz == Nz::Value ? f_.nz_reg : kRegNz;
    if (f_.nz == Nz::Compare) {
        a_.sub(kTemp, f_.nz_reg, u32{f_.nz_imm});
        r = kTemp;
    } else if (f_.nz == Nz::InPlace && !f_.nz_plain) {
        a_.orr_right(kTemp, kRegNz, kRegNz, 8);
        r = kTemp;
    }
    if (when_negative)
        a_.tbnz(r, 7, to);
    else
        a_.tbz(r, 7, to);
}

void A64Lowering::branch(const Step& s, Label to, bool jump_if_taken, FlagState& on_taken) {
    const bool wants_set = s.op == Op::Bcs || s.op == Op::Bvs || s.op == Op::Beq || s.op == Op::Bmi;
    const bool jump_if_set = wants_set == jump_if_taken;
    switch (s.op) {
        case Op::Beq:
        case Op::Bne:
            jump_on_zero(to, jump_if_set);
            break;
        case Op::Bmi:
        case Op::Bpl:
            jump_on_sign(to, jump_if_set);
            break;
        default: {
            const bool carry = s.op == Op::Bcc || s.op == Op::Bcs;
            if (carry) place_flags(kC);
            const Reg flag = carry ? kCarry : kOverflow;
            if (carry && f_.host_compared)
                a_.b(jump_if_set ? kHs : kLo, to);
            else if (jump_if_set)
                a_.cbnz(flag, to);
            else
                a_.cbz(flag, to);
        }
    }
    on_taken = f_;
    if (s.op == Op::Bcc || s.op == Op::Bcs) {
        on_taken.carry_value = s.op == Op::Bcs;
        f_.carry_value = s.op == Op::Bcc;
    }
}

void A64Lowering::jsr(const Step& s) {
    // Both bytes at once, unless the stack wraps around; so a matching Rts need not look.
    a_.cmp(kRegS, 2);
    f_.host_compared = false;
    a_.b(kLo, cold_exit(s.pc, Exit::Interpret, s.start));
    a_.mov(kValue, s.pc + 2u);
    a_.add_index(kAddress, kRam, kRegS);
    a_.sub64(kAddress, kAddress, 1);
    a_.strh(kValue, kAddress, 0x100);
    a_.sub(kRegS, kRegS, 2u);
}

void A64Lowering::rts(const Step& s) {
    const Label elsewhere = cold_exit(s.pc, Exit::Interpret, s.start);
    f_.host_compared = false;
    if (!s.inlined) {
        a_.cmp(kRegS, 0xFD);
        a_.b(kHi, elsewhere);
    }
    a_.add_index(kAddress, kRam, kRegS);
    a_.add64(kAddress, kAddress, 1);
    a_.ldrh(kT0, kAddress, 0x100);
    if (s.inlined) {
        a_.mov(kT1, static_cast<u16>(s.target - 1));
        a_.subs(zr, kT0, kT1);
        a_.b(kNe, elsewhere);
        return a_.add(kRegS, kRegS, 2u);
    }
    a_.mov(kT1, 0x7FFF);
    a_.sub(kT0, kT0, kT1);
    a_.shr(kTemp, kT0, 15);
    a_.cbnz(kTemp, elsewhere);
    a_.add(kRegS, kRegS, 2u);
    jump_to_entry(s.end);
}

void A64Lowering::jmp_indirect(const Step& s) {
    a_.ldrb(kT0, kRam, s.operand & 0x7FFu);
    // The pointer's high byte comes from the same page.
    a_.ldrb(kT1, kRam, (s.operand & 0x700u) | ((s.operand + 1u) & 0xFF));
    a_.add(kT0, kT0, kT1, 8);
    a_.sub(kT0, kT0, 0x8000u);
    a_.shr(kTemp, kT0, 15);
    a_.cbnz(kTemp, cold_exit(s.pc, Exit::Interpret, s.start));
    jump_to_entry(s.end);
}

}  // namespace wz::jit::a64
#endif
