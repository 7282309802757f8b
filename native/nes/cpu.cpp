#include "nes/cpu_core.hpp"

namespace wz::cpu {

void enter_interrupt(Machine& m, const Cartridge& c, u16 vector) {
    m.ram[0x100 | m.s--] = static_cast<u8>(m.pc >> 8);
    m.ram[0x100 | m.s--] = static_cast<u8>(m.pc);
    // An NMI seen by now takes over the sequence that an IRQ began.
    if (m.nmi_sample <= m.clock + 3) {
        vector = 0xFFFA;
        m.nmi_sample = kNever;
    }
    m.ram[0x100 | m.s--] = static_cast<u8>((m.p & ~kBreak) | kUnused);
    m.p |= kInterrupt;
    m.pc = static_cast<u16>(c.prg[vector & 0x7FFF] | c.prg[(vector + 1) & 0x7FFF] << 8);
    m.clock += 7;
    m.tail = Tail::NoPoll;
}

u8 fetch_opcode_slowly(Console& k, u16 pc, i64 clock) {
    const u8 opcode = bus::read_any(k, pc, clock);
    // One-byte instructions read the byte behind them and throw it away, which matters where that is a
    // register.
    const u8 low = opcode & 0x0F;
    const bool one_byte = low == 8 || low == 10 || opcode == 0x00 || opcode == 0x40 || opcode == 0x60;
    if (one_byte && pc >= 0x1FFF && pc < 0x4020) bus::read_any(k, static_cast<u16>(pc + 1), clock + 1);
    return opcode;
}

template <bool SkipIdle>
void execute(Console& k) {
    Machine& m = k.m;
    if (m.jammed) {
        if (m.clock < m.limit) m.clock = m.limit;
        m.tail = Tail::NoPoll;
        return;
    }
    Core<SkipIdle> c(k);

#define OP(code) L_##code
#define NEXT                                                     \
    do {                                                         \
        if (__builtin_expect(c.clock >= c.limit, 0)) goto leave; \
        goto* table[c.opcode()];                                 \
    } while (0)
#define DO(code, cycles, ...) \
    OP(code) : {              \
        __VA_ARGS__;          \
        c.clock += (cycles);  \
        NEXT;                 \
    }
#define IMPLIED(code, ...) DO(code, 2, ++c.pc; __VA_ARGS__)
// One instruction in all eight read modes of the main group; `v` is the operand.
#define READ_GROUP(imm, zp, zpx, abs, absx, absy, indx, indy, ...) \
    DO(imm, 2, const u8 v = c.byte(); __VA_ARGS__)                 \
    DO(zp, 3, const u8 v = c.ram[c.byte()]; __VA_ARGS__)           \
    DO(zpx, 4, const u8 v = c.ram[c.zp_x()]; __VA_ARGS__)          \
    DO(abs, 4, const u8 v = c.read_abs(); __VA_ARGS__)             \
    DO(absx, 4, const u8 v = c.read_abs_x(); __VA_ARGS__)          \
    DO(absy, 4, const u8 v = c.read_abs_y(); __VA_ARGS__)          \
    DO(indx, 6, const u8 v = c.read_ind_x(); __VA_ARGS__)          \
    DO(indy, 5, const u8 v = c.read_ind_y(); __VA_ARGS__)
// Read-modify-write in its four official modes.
#define MODIFY_GROUP(zp, zpx, abs, absx, op)                                                \
    DO(zp, 5, const u8 at = c.byte(); c.ram[at] = c.template apply<Modify::op>(c.ram[at]))  \
    DO(zpx, 6, const u8 at = c.zp_x(); c.ram[at] = c.template apply<Modify::op>(c.ram[at])) \
    DO(abs, 6, c.template modify<Modify::op>(c.word(), 3))                                  \
    DO(absx, 7, c.template modify<Modify::op>(c.indexed_write_address(c.word(), c.x, 3), 4))
#define MODIFY_GROUP_UNOFFICIAL(zp, zpx, abs, absx, absy, indx, indy, op)                    \
    MODIFY_GROUP(zp, zpx, abs, absx, op)                                                     \
    DO(absy, 7, c.template modify<Modify::op>(c.indexed_write_address(c.word(), c.y, 3), 4)) \
    DO(indx, 8, c.template modify<Modify::op>(c.ind_x(), 5))                                 \
    DO(indy, 8, c.template modify<Modify::op>(c.indexed_write_address(c.pointer(c.byte()), c.y, 4), 5))
#define BRANCH(code, condition)                            \
    OP(code) : {                                           \
        const u8 offset = c.byte();                        \
        if (condition) {                                   \
            const bool crossed = c.take_branch(offset);    \
            if (__builtin_expect(c.clock >= c.limit, 0)) { \
                if (!crossed) c.tail = Tail::TakenBranch;  \
                goto leave;                                \
            }                                              \
            goto* table[c.opcode()];                       \
        }                                                  \
        c.clock += 2;                                      \
        NEXT;                                              \
    }

#define ROW(h)                                                                                      \
    &&L_##h##0, &&L_##h##1, &&L_##h##2, &&L_##h##3, &&L_##h##4, &&L_##h##5, &&L_##h##6, &&L_##h##7, \
        &&L_##h##8, &&L_##h##9, &&L_##h##A, &&L_##h##B, &&L_##h##C, &&L_##h##D, &&L_##h##E, &&L_##h##F
    static const void* const table[256] = {ROW(0), ROW(1), ROW(2), ROW(3), ROW(4), ROW(5), ROW(6), ROW(7),
                                           ROW(8), ROW(9), ROW(A), ROW(B), ROW(C), ROW(D), ROW(E), ROW(F)};
    NEXT;

    // ---- loads, arithmetic, logic ----
    READ_GROUP(A9, A5, B5, AD, BD, B9, A1, B1, c.flags_of(c.a = v))
    READ_GROUP(09, 05, 15, 0D, 1D, 19, 01, 11, c.flags_of(c.a |= v))
    READ_GROUP(29, 25, 35, 2D, 3D, 39, 21, 31, c.flags_of(c.a &= v))
    READ_GROUP(49, 45, 55, 4D, 5D, 59, 41, 51, c.flags_of(c.a ^= v))
    READ_GROUP(69, 65, 75, 6D, 7D, 79, 61, 71, c.adc(v))
    READ_GROUP(E9, E5, F5, ED, FD, F9, E1, F1, c.sbc(v))
    READ_GROUP(C9, C5, D5, CD, DD, D9, C1, D1, c.compare(c.a, v))
    DO(A2, 2, c.flags_of(c.x = c.byte()))
    DO(A6, 3, c.flags_of(c.x = c.ram[c.byte()]))
    DO(B6, 4, c.flags_of(c.x = c.ram[c.zp_y()]))
    DO(AE, 4, c.flags_of(c.x = c.read_abs()))
    DO(BE, 4, c.flags_of(c.x = c.read_abs_y()))
    DO(A0, 2, c.flags_of(c.y = c.byte()))
    DO(A4, 3, c.flags_of(c.y = c.ram[c.byte()]))
    DO(B4, 4, c.flags_of(c.y = c.ram[c.zp_x()]))
    DO(AC, 4, c.flags_of(c.y = c.read_abs()))
    DO(BC, 4, c.flags_of(c.y = c.read_abs_x()))
    DO(E0, 2, c.compare(c.x, c.byte()))
    DO(E4, 3, c.compare(c.x, c.ram[c.byte()]))
    DO(EC, 4, c.compare(c.x, c.read_abs()))
    DO(C0, 2, c.compare(c.y, c.byte()))
    DO(C4, 3, c.compare(c.y, c.ram[c.byte()]))
    DO(CC, 4, c.compare(c.y, c.read_abs()))
    DO(24, 3, c.bit(c.ram[c.byte()]))
    DO(2C, 4, c.bit(c.read_abs()))

    // ---- stores ----
    DO(85, 3, c.ram[c.byte()] = c.a)
    DO(95, 4, c.ram[c.zp_x()] = c.a)
    DO(8D, 4, c.write(c.word(), c.a, 3))
    DO(9D, 5, c.write(c.indexed_write_address(c.word(), c.x, 3), c.a, 4))
    DO(99, 5, c.write(c.indexed_write_address(c.word(), c.y, 3), c.a, 4))
    DO(81, 6, c.write(c.ind_x(), c.a, 5))
    DO(91, 6, c.write(c.indexed_write_address(c.pointer(c.byte()), c.y, 4), c.a, 5))
    DO(86, 3, c.ram[c.byte()] = c.x)
    DO(96, 4, c.ram[c.zp_y()] = c.x)
    DO(8E, 4, c.write(c.word(), c.x, 3))
    DO(84, 3, c.ram[c.byte()] = c.y)
    DO(94, 4, c.ram[c.zp_x()] = c.y)
    DO(8C, 4, c.write(c.word(), c.y, 3))

    // ---- read, modify, write ----
    MODIFY_GROUP(06, 16, 0E, 1E, asl)
    MODIFY_GROUP(46, 56, 4E, 5E, lsr)
    MODIFY_GROUP(26, 36, 2E, 3E, rol)
    MODIFY_GROUP(66, 76, 6E, 7E, ror)
    MODIFY_GROUP(E6, F6, EE, FE, inc)
    MODIFY_GROUP(C6, D6, CE, DE, dec)
    IMPLIED(0A, c.a = c.asl(c.a))
    IMPLIED(4A, c.a = c.lsr(c.a))
    IMPLIED(2A, c.a = c.rol(c.a))
    IMPLIED(6A, c.a = c.ror(c.a))

    // ---- registers and flags ----
    IMPLIED(AA, c.flags_of(c.x = c.a))
    IMPLIED(8A, c.flags_of(c.a = c.x))
    IMPLIED(A8, c.flags_of(c.y = c.a))
    IMPLIED(98, c.flags_of(c.a = c.y))
    IMPLIED(BA, c.flags_of(c.x = c.s))
    IMPLIED(9A, c.s = c.x)
    IMPLIED(E8, c.flags_of(++c.x))
    IMPLIED(C8, c.flags_of(++c.y))
    IMPLIED(CA, c.flags_of(--c.x))
    IMPLIED(88, c.flags_of(--c.y))
    IMPLIED(18, c.carry = 0)
    IMPLIED(38, c.carry = 1)
    IMPLIED(B8, c.overflow = 0)
    IMPLIED(D8, c.rest &= static_cast<u8>(~kDecimal))
    IMPLIED(F8, c.rest |= kDecimal)
    IMPLIED(EA, )
    OP(58) : {
        m.tail_interrupt_disable = c.rest & kInterrupt;
        c.rest &= static_cast<u8>(~kInterrupt);
        goto flag_changed;
    }
    OP(78) : {
        m.tail_interrupt_disable = c.rest & kInterrupt;
        c.rest |= kInterrupt;
        goto flag_changed;
    }
flag_changed:
    {
        ++c.pc;
        c.clock += 2;
        c.tail = Tail::FlagChange;
        goto leave;
    }

    // ---- stack and jumps ----
    DO(48, 3, ++c.pc; c.push(c.a))
    DO(08, 3, ++c.pc; c.push(c.status(kBreak)))
    DO(68, 4, ++c.pc; c.flags_of(c.a = c.pull()))
    OP(28) : {
        m.tail_interrupt_disable = c.rest & kInterrupt;
        c.set_status(c.pull());
        ++c.pc;
        c.clock += 4;
        c.tail = Tail::FlagChange;
        goto leave;
    }
    OP(4C) : {
        const u16 from = c.pc, to = c.word();
        c.pc = to;
        c.clock += 3;
        if constexpr (SkipIdle)
            if (to == from && c.clock < c.limit) c.clock += (c.limit - 1 - c.clock) / 3 * 3;
        NEXT;
    }
    OP(6C) : {
        const u16 at = c.word();
        // The pointer's high byte comes from the same page.
        const u8 lo = c.read(at, 3), hi = c.read(static_cast<u16>((at & 0xFF00) | ((at + 1) & 0xFF)), 4);
        c.pc = static_cast<u16>(lo | hi << 8);
        c.clock += 5;
        NEXT;
    }
    OP(20) : {
        const u8 lo = c.fetch(static_cast<u16>(c.pc + 1), 1);
        const u16 back = static_cast<u16>(c.pc + 2);
        c.push(static_cast<u8>(back >> 8));
        c.push(static_cast<u8>(back));
        c.pc = static_cast<u16>(lo | c.fetch(back, 5) << 8);
        c.clock += 6;
        NEXT;
    }
    OP(60) : {
        const u8 lo = c.pull(), hi = c.pull();
        const u16 back = static_cast<u16>(lo | hi << 8);
        if (__builtin_expect(back < 0x8000, 0)) c.dummy_read(back, 5);
        c.pc = static_cast<u16>(back + 1);
        c.clock += 6;
        NEXT;
    }
    OP(40) : {
        c.set_status(c.pull());
        const u8 lo = c.pull(), hi = c.pull();
        c.pc = static_cast<u16>(lo | hi << 8);
        c.clock += 6;
        goto leave;
    }
    OP(00) : {
        const u16 back = static_cast<u16>(c.pc + 2);
        c.push(static_cast<u8>(back >> 8));
        c.push(static_cast<u8>(back));
        u16 vector = 0xFFFE;
        if (m.nmi_sample <= c.clock + 3) {
            vector = 0xFFFA;
            m.nmi_sample = kNever;
        }
        c.push(c.status(kBreak));
        c.rest |= kInterrupt;
        c.pc = static_cast<u16>(c.prg[vector & 0x7FFF] | c.prg[(vector + 1) & 0x7FFF] << 8);
        c.clock += 7;
        c.tail = Tail::NoPoll;
        goto leave;
    }
    BRANCH(10, !(c.negative & 0x80))
    BRANCH(30, c.negative & 0x80)
    BRANCH(50, !c.overflow)
    BRANCH(70, c.overflow)
    BRANCH(90, !c.carry)
    BRANCH(B0, c.carry)
    BRANCH(D0, c.zero)
    BRANCH(F0, !c.zero)

    // ---- unofficial ----
    MODIFY_GROUP_UNOFFICIAL(07, 17, 0F, 1F, 1B, 03, 13, slo)
    MODIFY_GROUP_UNOFFICIAL(27, 37, 2F, 3F, 3B, 23, 33, rla)
    MODIFY_GROUP_UNOFFICIAL(47, 57, 4F, 5F, 5B, 43, 53, sre)
    MODIFY_GROUP_UNOFFICIAL(67, 77, 6F, 7F, 7B, 63, 73, rra)
    MODIFY_GROUP_UNOFFICIAL(C7, D7, CF, DF, DB, C3, D3, dcp)
    MODIFY_GROUP_UNOFFICIAL(E7, F7, EF, FF, FB, E3, F3, isc)
    DO(A7, 3, c.flags_of(c.a = c.x = c.ram[c.byte()]))
    DO(B7, 4, c.flags_of(c.a = c.x = c.ram[c.zp_y()]))
    DO(AF, 4, c.flags_of(c.a = c.x = c.read_abs()))
    DO(BF, 4, c.flags_of(c.a = c.x = c.read_abs_y()))
    DO(A3, 6, c.flags_of(c.a = c.x = c.read_ind_x()))
    DO(B3, 5, c.flags_of(c.a = c.x = c.read_ind_y()))
    DO(87, 3, c.ram[c.byte()] = c.a & c.x)
    DO(97, 4, c.ram[c.zp_y()] = c.a & c.x)
    DO(8F, 4, c.write(c.word(), c.a & c.x, 3))
    DO(83, 6, c.write(c.ind_x(), c.a & c.x, 5))
    OP(0B) : OP(2B) : {
        c.flags_of(c.a &= c.byte());
        c.carry = c.a >> 7;
        c.clock += 2;
        NEXT;
    }
    DO(4B, 2, c.a &= c.byte(); c.a = c.lsr(c.a))
    DO(6B, 2, {
        c.a = static_cast<u8>((c.a & c.byte()) >> 1 | c.carry << 7);
        c.flags_of(c.a);
        c.carry = c.a >> 6 & 1;
        c.overflow = ((c.a >> 6 ^ c.a >> 5) & 1) ? kOverflow : 0;
    })
    DO(8B, 2, c.flags_of(c.a = static_cast<u8>((c.a | 0xEE) & c.x & c.byte())))
    DO(AB, 2, c.flags_of(c.a = c.x = c.byte()))
    DO(CB, 2, {
        const int difference = (c.a & c.x) - c.byte();
        c.carry = difference >= 0;
        c.flags_of(c.x = static_cast<u8>(difference));
    })
    DO(EB, 2, c.sbc(c.byte()))
    DO(9C, 5, c.store_high(c.word(), c.x, c.y, 3))
    DO(9E, 5, c.store_high(c.word(), c.y, c.x, 3))
    DO(9F, 5, c.store_high(c.word(), c.y, c.a & c.x, 3))
    DO(93, 6, c.store_high(c.pointer(c.byte()), c.y, c.a & c.x, 4))
    DO(9B, 5, c.s = c.a & c.x; c.store_high(c.word(), c.y, c.s, 3))
    DO(BB, 4, c.flags_of(c.a = c.x = c.s = c.s & c.read_abs_y()))
    OP(1A) : OP(3A) : OP(5A) : OP(7A) : OP(DA) : OP(FA) : {
        ++c.pc;
        c.clock += 2;
        NEXT;
    }
    OP(80) : OP(82) : OP(89) : OP(C2) : OP(E2) : {
        c.byte();
        c.clock += 2;
        NEXT;
    }
    OP(04) : OP(44) : OP(64) : {
        c.byte();
        c.clock += 3;
        NEXT;
    }
    OP(14) : OP(34) : OP(54) : OP(74) : OP(D4) : OP(F4) : {
        c.byte();
        c.clock += 4;
        NEXT;
    }
    DO(0C, 4, c.read_abs())
    OP(1C) : OP(3C) : OP(5C) : OP(7C) : OP(DC) : OP(FC) : {
        c.read_abs_x();
        c.clock += 4;
        NEXT;
    }
    OP(02)
        : OP(12) : OP(22) : OP(32) : OP(42) : OP(52) : OP(62) : OP(72) : OP(92) : OP(B2) : OP(D2) : OP(F2) : {
        m.jammed = 1;
        c.clock = c.clock < c.limit ? c.limit : c.clock + 1;
        c.tail = Tail::NoPoll;
        goto leave;
    }

leave:
    c.store();
}

template void execute<true>(Console&);
template void execute<false>(Console&);

}  // namespace wz::cpu
