#include "nes/jit_x64_lower.hpp"

#if defined(__x86_64__)

namespace wz::jit::x64 {

using HostCarry = FlagState::HostCarry;
using Nz = FlagState::Nz;

void Lowering::alu(Alu op, Reg to, const Operand& o) {
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

void Lowering::load(Reg to, const Step& s) {
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

void Lowering::store(Reg from, const Step& s) {
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

void Lowering::arithmetic(const Step& s) {
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

void Lowering::compare(Reg reg, const Step& s) {
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

void Lowering::bit(const Step& s) {
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

void Lowering::modify_byte(const Step& s, Reg r) {
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

void Lowering::modify(const Step& s) {
    if (s.mode == Mode::Accumulator) {
        modify_byte(s, kRegA);
        set_nz(kRegA);
        return;
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

void Lowering::transfer(Reg to, Reg from) {
    a_.mov32(to, from);
    f_.host_nz = false;
    set_nz(to);
}

/// Moves a register up or down by `times`.
void Lowering::count(const Step& s, Reg r, u8 times) {
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

/// ASL A or LSR A, several of them.
void Lowering::shift(const Step& s, u8 times) {
    a_.shift8(s.op == Op::Asl ? kShl : kShr, kRegA, times);
    set_nz(kRegA);
    f_.host_nz = true;
    carry_from_host(s, HostCarry::Same);
}

/// Emits the first of `rest`, together with those behind it that merely repeat it. Returns how many.
std::size_t Lowering::steps(std::span<const Step> rest) {
    const Step& s = rest.front();
    std::size_t same = 1;
    while (same < rest.size() && same < 7 && rest[same].op == s.op && rest[same].mode == s.mode) ++same;
    const Step& last = rest[same - 1];
    if (same > 1 && (s.op == Op::Inx || s.op == Op::Dex))
        count(last, kRegX, static_cast<u8>(same));
    else if (same > 1 && (s.op == Op::Iny || s.op == Op::Dey))
        count(last, kRegY, static_cast<u8>(same));
    else if (same > 1 && (s.op == Op::Asl || s.op == Op::Lsr) && s.mode == Mode::Accumulator)
        shift(last, static_cast<u8>(same));
    else
        step(s), same = 1;
    return same;
}

void Lowering::step(const Step& s) {
    switch (s.op) {
        case Op::Lda:
            return load(kRegA, s);
        case Op::Ldx:
            return load(kRegX, s);
        case Op::Ldy:
            return load(kRegY, s);
        case Op::Sta:
            return store(kRegA, s);
        case Op::Stx:
            return store(kRegX, s);
        case Op::Sty:
            return store(kRegY, s);
        case Op::Ora:
        case Op::And:
        case Op::Eor:
        case Op::Adc:
        case Op::Sbc:
            return arithmetic(s);
        case Op::Cmp:
            return compare(kRegA, s);
        case Op::Cpx:
            return compare(kRegX, s);
        case Op::Cpy:
            return compare(kRegY, s);
        case Op::Bit:
            return bit(s);
        case Op::Asl:
        case Op::Lsr:
        case Op::Rol:
        case Op::Ror:
        case Op::Inc:
        case Op::Dec:
            return modify(s);
        case Op::Tax:
            return transfer(kRegX, kRegA);
        case Op::Txa:
            return transfer(kRegA, kRegX);
        case Op::Tay:
            return transfer(kRegY, kRegA);
        case Op::Tya:
            return transfer(kRegA, kRegY);
        case Op::Tsx:
            return transfer(kRegX, kRegS);
        case Op::Txs:
            return a_.mov32(kRegS, kRegX);
        case Op::Inx:
        case Op::Dex:
            return count(s, kRegX, 1);
        case Op::Iny:
        case Op::Dey:
            return count(s, kRegY, 1);
        case Op::Clc:
        case Op::Sec:
            f_.carry_value = s.op == Op::Sec;
            f_.carry_in_place = false;
            f_.host_carry = HostCarry::None;
            return;
        case Op::Clv:
            return a_.mov32(kOverflow, u32{0});
        case Op::Cld:
        case Op::Sed: {
            constexpr u8 decimal = 8;
            const Mem p = machine(offsetof(Machine, p));
            if (s.op == Op::Cld)
                a_.alu8(kAnd, p, static_cast<u8>(~decimal));
            else
                a_.alu8(kOr, p, decimal);
            return f_.clobber_host();
        }
        case Op::Pha:
            a_.mov8(ram(kRegS, 0x100), kRegA);
            a_.dec8(kRegS);
            return f_.clobber_host();
        case Op::Pla:
            a_.inc8(kRegS);
            a_.movzx8(kRegA, ram(kRegS, 0x100));
            f_.clobber_host();
            return set_nz(kRegA);
        case Op::Jsr:
            return jsr(s);
        case Op::Rts:
            return rts(s);
        case Op::JmpIndirect:
            return jmp_indirect(s);
        case Op::Jmp:
        case Op::Nop:
        case Op::Rare:
            return;
        default:
            return branch(s);
    }
}

void Lowering::branch(const Step& s) {
    if (s.inlined) return;
    Cond taken;
    switch (s.op) {
        case Op::Bcc:
        case Op::Bcs:
            if (f_.host_carry == HostCarry::None) {
                place_carry();
                a_.test8(kCarry, kCarry);
                f_.clobber_host();
                taken = kNE;
            } else {
                taken = f_.host_carry == HostCarry::Same ? kB : kAE;
            }
            if (s.op == Op::Bcc) taken = negated(taken);
            break;
        case Op::Bvc:
        case Op::Bvs:
            a_.test8(kOverflow, kOverflow);
            f_.clobber_host();
            taken = s.op == Op::Bvs ? kNE : kE;
            break;
        default: {
            const bool sign = s.op == Op::Bpl || s.op == Op::Bmi;
            if (sign && !f_.host_nz && f_.nz == Nz::InPlace && !f_.nz_plain) {
                a_.test32(kRegNz, 0x8080);
                f_.clobber_host();
                taken = s.op == Op::Bmi ? kNE : kE;
                break;
            }
            if (!f_.host_nz) {
                if (f_.nz == Nz::Compare) {
                    a_.alu8(kCmp, f_.nz_reg, f_.nz_imm);
                } else {
                    const Reg r = f_.nz == Nz::Value ? f_.nz_reg : kRegNz;
                    a_.test8(r, r);
                }
                f_.clobber_host();
                // Of an unclean value only Z is known.
                f_.host_nz = f_.nz != Nz::InPlace || f_.nz_plain;
            }
            taken = s.op == Op::Beq ? kE : s.op == Op::Bne ? kNE : s.op == Op::Bmi ? kS : kNS;
        }
    }
    const FlagState before = f_;
    if (s.op == Op::Bcc) f_.carry_value = 0;
    if (s.op == Op::Bcs) f_.carry_value = 1;
    const int cycles = s.start + s.taken_cycles();
    const int poll = poll_length(prg_, s);
    const Label from = a_.label();
    if (s.target <= s.pc) {
        // A loop: expect it to be taken.
        a_.jcc(negated(taken), from);
        edge(s.target, cycles, poll);
        a_.bind(from);
    } else {
        a_.jcc(taken, from);
        side_.push_back({from, f_, s.target, cycles, poll});
    }
    f_ = before;
    if (s.op == Op::Bcc) f_.carry_value = 1;
    if (s.op == Op::Bcs) f_.carry_value = 0;
}

void Lowering::jsr(const Step& s) {
    const u16 back = static_cast<u16>(s.pc + 2);
    // Both bytes at once, unless the stack wraps around; so a matching Rts need not look.
    a_.alu8(kCmp, kRegS, u8{2});
    f_.clobber_host();
    a_.jcc(kB, cold_exit(s.pc, Exit::Interpret, s.start));
    a_.mov16(ram(kRegS, 0x100 - 1), back);
    a_.alu8(kSub, kRegS, u8{2});
}

void Lowering::rts(const Step& s) {
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

void Lowering::jmp_indirect(const Step& s) {
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
