#include "nes/cpu.hpp"

#include "nes/idle.hpp"

namespace wz::cpu {

#define WZ_INLINE __attribute__((always_inline))

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

template <bool SkipIdle>
void execute(Console& k) {
    Machine& m = k.m;
    if (m.jammed) {
        if (m.clock < m.limit) m.clock = m.limit;
        m.tail = Tail::NoPoll;
        return;
    }
    u8* const ram = m.ram;
    const u8* const prg = k.cart.prg.data();
    i64 clock = m.clock, limit = m.limit;
    u16 pc = m.pc;
    u8 a = m.a, x = m.x, y = m.y, s = m.s;
    u8 carry = m.p & kCarry, overflow = m.p & kOverflow, rest = m.p & (kInterrupt | kDecimal);
    u8 negative = m.p & kNegative, zero = !(m.p & kZero);  // N is bit 7 of one, Z is whether the other is 0
    Tail tail = Tail::Normal;

    // ---- memory; `at` is the access's cycle within the instruction, counted from 0 ----
    auto fetch = [&](u16 addr) WZ_INLINE -> u8 {
        if (__builtin_expect(addr >= 0x8000, 1)) return prg[addr & 0x7FFF];
        const u8 v = bus::read_any(k, addr, clock);
        limit = m.limit;
        return v;
    };
    auto read = [&](u16 addr, int at) WZ_INLINE -> u8 {
        if (addr < 0x2000) return ram[addr & 0x7FF];
        if (addr >= 0x8000) return prg[addr & 0x7FFF];
        const u8 v = bus::read_slow(k, addr, clock + at);
        limit = m.limit;
        return v;
    };
    auto write = [&](u16 addr, u8 v, int at) WZ_INLINE {
        if (__builtin_expect(addr < 0x2000, 1)) {
            ram[addr & 0x7FF] = v;
            return;
        }
        clock += bus::write_slow(k, addr, v, clock + at);
        limit = m.limit;
    };
    // An access whose value is thrown away: it matters only to registers.
    auto dummy_read = [&](u16 addr, int at) WZ_INLINE {
        if (__builtin_expect(addr >= 0x2000 && addr < 0x4020, 0)) {
            bus::read_slow(k, addr, clock + at);
            limit = m.limit;
        }
    };
    auto push = [&](u8 v) WZ_INLINE { ram[0x100 | s--] = v; };
    auto pull = [&]() WZ_INLINE -> u8 { return ram[0x100 | ++s]; };

    // ---- operands and addresses; each moves pc past the instruction ----
    auto byte = [&]() WZ_INLINE -> u8 {
        const u8 v = fetch(static_cast<u16>(pc + 1));
        pc = static_cast<u16>(pc + 2);
        return v;
    };
    auto word = [&]() WZ_INLINE -> u16 {
        const u8 lo = fetch(static_cast<u16>(pc + 1)), hi = fetch(static_cast<u16>(pc + 2));
        pc = static_cast<u16>(pc + 3);
        return static_cast<u16>(lo | hi << 8);
    };
    auto pointer = [&](u8 at) WZ_INLINE -> u16 {
        return static_cast<u16>(ram[at] | ram[static_cast<u8>(at + 1)] << 8);
    };
    auto zp_x = [&]() WZ_INLINE { return static_cast<u8>(byte() + x); };
    auto zp_y = [&]() WZ_INLINE { return static_cast<u8>(byte() + y); };
    auto ind_x = [&]() WZ_INLINE -> u16 { return pointer(static_cast<u8>(byte() + x)); };
    // Reads through an index take a cycle more when they leave the page, and look at the wrong page first.
    auto indexed_read = [&](u16 base, u8 index, int at) WZ_INLINE -> u8 {
        const u16 addr = static_cast<u16>(base + index);
        if ((base ^ addr) & 0xFF00) {
            dummy_read(static_cast<u16>((base & 0xFF00) | (addr & 0xFF)), at);
            ++clock;
        }
        return read(addr, at);
    };
    // Writes always take it.
    auto indexed_write_address = [&](u16 base, u8 index, int at) WZ_INLINE -> u16 {
        const u16 addr = static_cast<u16>(base + index);
        dummy_read(static_cast<u16>((base & 0xFF00) | (addr & 0xFF)), at);
        return addr;
    };
    auto read_abs = [&]() WZ_INLINE -> u8 { return read(word(), 3); };
    auto read_abs_x = [&]() WZ_INLINE -> u8 { return indexed_read(word(), x, 3); };
    auto read_abs_y = [&]() WZ_INLINE -> u8 { return indexed_read(word(), y, 3); };
    auto read_ind_x = [&]() WZ_INLINE -> u8 { return read(ind_x(), 5); };
    auto read_ind_y = [&]() WZ_INLINE -> u8 { return indexed_read(pointer(byte()), y, 4); };

    // ---- what instructions do ----
    auto flags_of = [&](u8 v) WZ_INLINE { negative = zero = v; };
    auto adc = [&](u8 v) WZ_INLINE {
        const int sum = a + v + carry;
        overflow = static_cast<u8>((~(a ^ v) & (a ^ sum) & 0x80) >> 1);
        carry = static_cast<u8>(sum >> 8);
        flags_of(a = static_cast<u8>(sum));
    };
    auto sbc = [&](u8 v) WZ_INLINE { adc(static_cast<u8>(~v)); };
    auto compare = [&](u8 reg, u8 v) WZ_INLINE {
        carry = reg >= v;
        flags_of(static_cast<u8>(reg - v));
    };
    auto bit = [&](u8 v) WZ_INLINE {
        negative = v;
        overflow = v & kOverflow;
        zero = a & v;
    };
    auto asl = [&](u8 v) WZ_INLINE -> u8 {
        carry = v >> 7;
        flags_of(v = static_cast<u8>(v << 1));
        return v;
    };
    auto lsr = [&](u8 v) WZ_INLINE -> u8 {
        carry = v & 1;
        flags_of(v = v >> 1);
        return v;
    };
    auto rol = [&](u8 v) WZ_INLINE -> u8 {
        const u8 in = carry;
        carry = v >> 7;
        flags_of(v = static_cast<u8>(v << 1 | in));
        return v;
    };
    auto ror = [&](u8 v) WZ_INLINE -> u8 {
        const u8 in = static_cast<u8>(carry << 7);
        carry = v & 1;
        flags_of(v = static_cast<u8>(v >> 1 | in));
        return v;
    };
    auto inc = [&](u8 v) WZ_INLINE -> u8 {
        flags_of(++v);
        return v;
    };
    auto dec = [&](u8 v) WZ_INLINE -> u8 {
        flags_of(--v);
        return v;
    };
    auto slo = [&](u8 v) WZ_INLINE -> u8 {
        v = asl(v);
        flags_of(a |= v);
        return v;
    };
    auto rla = [&](u8 v) WZ_INLINE -> u8 {
        v = rol(v);
        flags_of(a &= v);
        return v;
    };
    auto sre = [&](u8 v) WZ_INLINE -> u8 {
        v = lsr(v);
        flags_of(a ^= v);
        return v;
    };
    auto rra = [&](u8 v) WZ_INLINE -> u8 {
        v = ror(v);
        adc(v);
        return v;
    };
    auto dcp = [&](u8 v) WZ_INLINE -> u8 {
        compare(a, --v);
        return v;
    };
    auto isc = [&](u8 v) WZ_INLINE -> u8 {
        sbc(++v);
        return v;
    };
    // Read, write back unchanged, write the result.
    auto modify = [&](u16 addr, int at, auto op) WZ_INLINE {
        if (__builtin_expect(addr < 0x2000, 1)) {
            u8& cell = ram[addr & 0x7FF];
            cell = op(cell);
            return;
        }
        const u8 v = read(addr, at);
        write(addr, v, at + 1);
        write(addr, op(v), at + 2);
    };
    auto status = [&](u8 extra) WZ_INLINE -> u8 {
        return static_cast<u8>((negative & 0x80) | overflow | kUnused | rest | (zero ? 0 : kZero) | carry | extra);
    };
    auto set_status = [&](u8 v) WZ_INLINE {
        negative = v & kNegative;
        overflow = v & kOverflow;
        rest = v & (kInterrupt | kDecimal);
        zero = !(v & kZero);
        carry = v & kCarry;
    };
    // SHA, SHX, SHY and TAS store a register ANDed with the high byte of the address plus one; when the index leaves
    // the page, that value also becomes the high byte of where it goes.
    auto store_high = [&](u16 base, u8 index, u8 value, int at) WZ_INLINE {
        u16 addr = indexed_write_address(base, index, at);
        value = static_cast<u8>(value & ((base >> 8) + 1));
        if ((base ^ addr) & 0xFF00) addr = static_cast<u16>((addr & 0xFF) | value << 8);
        write(addr, value, at + 1);
    };
    auto take_branch = [&](u8 offset) WZ_INLINE {
        const u16 target = static_cast<u16>(pc + static_cast<i8>(offset));
        const bool crossed = (pc ^ target) & 0xFF00;
        clock += 3 + crossed;
        if constexpr (SkipIdle) {
            if (static_cast<u8>(offset - 0xF9) <= 4 && clock < limit && target >= 0x8000) {
                const u8* loop = prg + (target & 0x7FFF);
                if (offset == 0xFD && (loop[0] == 0xCA || loop[0] == 0x88) && loop[1] == 0xD0) {
                    // DEX|DEY / BNE: count down all but the last turn.
                    u8& counter = loop[0] == 0xCA ? x : y;
                    const i64 length = 5 + crossed, fit = (limit - 1 - clock) / length;
                    const i64 turns = fit < counter - 1 ? fit : counter - 1;
                    counter = static_cast<u8>(counter - turns);
                    flags_of(counter);
                    clock += turns * length;
                } else if (idle::polls_status(loop, offset)) {
                    const i64 length = (offset == 0xF9 ? 9 : 7) + crossed;
                    m.limit = limit;
                    clock += length * idle::skippable_polls(k, clock, length);
                }
            }
        }
        pc = target;
        return crossed;
    };

#define OP(code) L_##code
#define NEXT                                         \
    do {                                             \
        if (__builtin_expect(clock >= limit, 0)) goto leave; \
        goto* table[fetch(pc)];                      \
    } while (0)
#define DO(code, cycles, ...) \
    OP(code) : {              \
        __VA_ARGS__;          \
        clock += (cycles);    \
        NEXT;                 \
    }
#define IMPLIED(code, ...) DO(code, 2, ++pc; __VA_ARGS__)
// One instruction in all eight read modes of the main group; `v` is the operand.
#define READ_GROUP(imm, zp, zpx, abs, absx, absy, indx, indy, ...)       \
    DO(imm, 2, const u8 v = byte(); __VA_ARGS__)                         \
    DO(zp, 3, const u8 v = ram[byte()]; __VA_ARGS__)                     \
    DO(zpx, 4, const u8 v = ram[zp_x()]; __VA_ARGS__)                    \
    DO(abs, 4, const u8 v = read_abs(); __VA_ARGS__)                     \
    DO(absx, 4, const u8 v = read_abs_x(); __VA_ARGS__)                  \
    DO(absy, 4, const u8 v = read_abs_y(); __VA_ARGS__)                  \
    DO(indx, 6, const u8 v = read_ind_x(); __VA_ARGS__)                  \
    DO(indy, 5, const u8 v = read_ind_y(); __VA_ARGS__)
// Read-modify-write in its four official modes.
#define MODIFY_GROUP(zp, zpx, abs, absx, op)                             \
    DO(zp, 5, u8& cell = ram[byte()]; cell = op(cell))                   \
    DO(zpx, 6, u8& cell = ram[zp_x()]; cell = op(cell))                  \
    DO(abs, 6, modify(word(), 3, op))                                    \
    DO(absx, 7, modify(indexed_write_address(word(), x, 3), 4, op))
#define MODIFY_GROUP_UNOFFICIAL(zp, zpx, abs, absx, absy, indx, indy, op) \
    MODIFY_GROUP(zp, zpx, abs, absx, op)                                  \
    DO(absy, 7, modify(indexed_write_address(word(), y, 3), 4, op))       \
    DO(indx, 8, modify(ind_x(), 5, op))                                   \
    DO(indy, 8, modify(indexed_write_address(pointer(byte()), y, 4), 5, op))
#define BRANCH(code, condition)                                            \
    OP(code) : {                                                           \
        const u8 offset = byte();                                          \
        if (condition) {                                                   \
            const bool crossed = take_branch(offset);                      \
            if (__builtin_expect(clock >= limit, 0)) {                     \
                if (!crossed) tail = Tail::TakenBranch;                    \
                goto leave;                                                \
            }                                                              \
            goto* table[fetch(pc)];                                        \
        }                                                                  \
        clock += 2;                                                        \
        NEXT;                                                              \
    }

#define ROW(h) &&L_##h##0, &&L_##h##1, &&L_##h##2, &&L_##h##3, &&L_##h##4, &&L_##h##5, &&L_##h##6, &&L_##h##7, \
               &&L_##h##8, &&L_##h##9, &&L_##h##A, &&L_##h##B, &&L_##h##C, &&L_##h##D, &&L_##h##E, &&L_##h##F
    static const void* const table[256] = {ROW(0), ROW(1), ROW(2), ROW(3), ROW(4), ROW(5), ROW(6), ROW(7),
                                           ROW(8), ROW(9), ROW(A), ROW(B), ROW(C), ROW(D), ROW(E), ROW(F)};
    NEXT;

    // ---- loads, arithmetic, logic ----
    READ_GROUP(A9, A5, B5, AD, BD, B9, A1, B1, flags_of(a = v))
    READ_GROUP(09, 05, 15, 0D, 1D, 19, 01, 11, flags_of(a |= v))
    READ_GROUP(29, 25, 35, 2D, 3D, 39, 21, 31, flags_of(a &= v))
    READ_GROUP(49, 45, 55, 4D, 5D, 59, 41, 51, flags_of(a ^= v))
    READ_GROUP(69, 65, 75, 6D, 7D, 79, 61, 71, adc(v))
    READ_GROUP(E9, E5, F5, ED, FD, F9, E1, F1, sbc(v))
    READ_GROUP(C9, C5, D5, CD, DD, D9, C1, D1, compare(a, v))
    DO(A2, 2, flags_of(x = byte()))
    DO(A6, 3, flags_of(x = ram[byte()]))
    DO(B6, 4, flags_of(x = ram[zp_y()]))
    DO(AE, 4, flags_of(x = read_abs()))
    DO(BE, 4, flags_of(x = read_abs_y()))
    DO(A0, 2, flags_of(y = byte()))
    DO(A4, 3, flags_of(y = ram[byte()]))
    DO(B4, 4, flags_of(y = ram[zp_x()]))
    DO(AC, 4, flags_of(y = read_abs()))
    DO(BC, 4, flags_of(y = read_abs_x()))
    DO(E0, 2, compare(x, byte()))
    DO(E4, 3, compare(x, ram[byte()]))
    DO(EC, 4, compare(x, read_abs()))
    DO(C0, 2, compare(y, byte()))
    DO(C4, 3, compare(y, ram[byte()]))
    DO(CC, 4, compare(y, read_abs()))
    DO(24, 3, bit(ram[byte()]))
    DO(2C, 4, bit(read_abs()))

    // ---- stores ----
    DO(85, 3, ram[byte()] = a)
    DO(95, 4, ram[zp_x()] = a)
    DO(8D, 4, write(word(), a, 3))
    DO(9D, 5, write(indexed_write_address(word(), x, 3), a, 4))
    DO(99, 5, write(indexed_write_address(word(), y, 3), a, 4))
    DO(81, 6, write(ind_x(), a, 5))
    DO(91, 6, write(indexed_write_address(pointer(byte()), y, 4), a, 5))
    DO(86, 3, ram[byte()] = x)
    DO(96, 4, ram[zp_y()] = x)
    DO(8E, 4, write(word(), x, 3))
    DO(84, 3, ram[byte()] = y)
    DO(94, 4, ram[zp_x()] = y)
    DO(8C, 4, write(word(), y, 3))

    // ---- read, modify, write ----
    MODIFY_GROUP(06, 16, 0E, 1E, asl)
    MODIFY_GROUP(46, 56, 4E, 5E, lsr)
    MODIFY_GROUP(26, 36, 2E, 3E, rol)
    MODIFY_GROUP(66, 76, 6E, 7E, ror)
    MODIFY_GROUP(E6, F6, EE, FE, inc)
    MODIFY_GROUP(C6, D6, CE, DE, dec)
    IMPLIED(0A, a = asl(a))
    IMPLIED(4A, a = lsr(a))
    IMPLIED(2A, a = rol(a))
    IMPLIED(6A, a = ror(a))

    // ---- registers and flags ----
    IMPLIED(AA, flags_of(x = a))
    IMPLIED(8A, flags_of(a = x))
    IMPLIED(A8, flags_of(y = a))
    IMPLIED(98, flags_of(a = y))
    IMPLIED(BA, flags_of(x = s))
    IMPLIED(9A, s = x)
    IMPLIED(E8, flags_of(++x))
    IMPLIED(C8, flags_of(++y))
    IMPLIED(CA, flags_of(--x))
    IMPLIED(88, flags_of(--y))
    IMPLIED(18, carry = 0)
    IMPLIED(38, carry = 1)
    IMPLIED(B8, overflow = 0)
    IMPLIED(D8, rest &= static_cast<u8>(~kDecimal))
    IMPLIED(F8, rest |= kDecimal)
    IMPLIED(EA, )
    OP(58) : {
        m.tail_interrupt_disable = rest & kInterrupt;
        rest &= static_cast<u8>(~kInterrupt);
        goto flag_changed;
    }
    OP(78) : {
        m.tail_interrupt_disable = rest & kInterrupt;
        rest |= kInterrupt;
        goto flag_changed;
    }
    flag_changed : {
        ++pc;
        clock += 2;
        tail = Tail::FlagChange;
        goto leave;
    }

    // ---- stack and jumps ----
    DO(48, 3, ++pc; push(a))
    DO(08, 3, ++pc; push(status(kBreak)))
    DO(68, 4, ++pc; flags_of(a = pull()))
    OP(28) : {
        m.tail_interrupt_disable = rest & kInterrupt;
        set_status(pull());
        ++pc;
        clock += 4;
        tail = Tail::FlagChange;
        goto leave;
    }
    OP(4C) : {
        const u16 from = pc, to = word();
        pc = to;
        clock += 3;
        if constexpr (SkipIdle)
            if (to == from && clock < limit) clock += (limit - 1 - clock) / 3 * 3;
        NEXT;
    }
    OP(6C) : {
        const u16 at = word();
        // The pointer's high byte comes from the same page.
        const u8 lo = read(at, 3), hi = read(static_cast<u16>((at & 0xFF00) | ((at + 1) & 0xFF)), 4);
        pc = static_cast<u16>(lo | hi << 8);
        clock += 5;
        NEXT;
    }
    OP(20) : {
        const u8 lo = fetch(static_cast<u16>(pc + 1));
        const u16 back = static_cast<u16>(pc + 2);
        push(static_cast<u8>(back >> 8));
        push(static_cast<u8>(back));
        pc = static_cast<u16>(lo | fetch(back) << 8);
        clock += 6;
        NEXT;
    }
    OP(60) : {
        const u8 lo = pull(), hi = pull();
        pc = static_cast<u16>((lo | hi << 8) + 1);
        clock += 6;
        NEXT;
    }
    OP(40) : {
        set_status(pull());
        const u8 lo = pull(), hi = pull();
        pc = static_cast<u16>(lo | hi << 8);
        clock += 6;
        goto leave;
    }
    OP(00) : {
        const u16 back = static_cast<u16>(pc + 2);
        push(static_cast<u8>(back >> 8));
        push(static_cast<u8>(back));
        u16 vector = 0xFFFE;
        if (m.nmi_sample <= clock + 3) {
            vector = 0xFFFA;
            m.nmi_sample = kNever;
        }
        push(status(kBreak));
        rest |= kInterrupt;
        pc = static_cast<u16>(prg[vector & 0x7FFF] | prg[(vector + 1) & 0x7FFF] << 8);
        clock += 7;
        tail = Tail::NoPoll;
        goto leave;
    }
    BRANCH(10, !(negative & 0x80))
    BRANCH(30, negative & 0x80)
    BRANCH(50, !overflow)
    BRANCH(70, overflow)
    BRANCH(90, !carry)
    BRANCH(B0, carry)
    BRANCH(D0, zero)
    BRANCH(F0, !zero)

    // ---- unofficial ----
    MODIFY_GROUP_UNOFFICIAL(07, 17, 0F, 1F, 1B, 03, 13, slo)
    MODIFY_GROUP_UNOFFICIAL(27, 37, 2F, 3F, 3B, 23, 33, rla)
    MODIFY_GROUP_UNOFFICIAL(47, 57, 4F, 5F, 5B, 43, 53, sre)
    MODIFY_GROUP_UNOFFICIAL(67, 77, 6F, 7F, 7B, 63, 73, rra)
    MODIFY_GROUP_UNOFFICIAL(C7, D7, CF, DF, DB, C3, D3, dcp)
    MODIFY_GROUP_UNOFFICIAL(E7, F7, EF, FF, FB, E3, F3, isc)
    DO(A7, 3, flags_of(a = x = ram[byte()]))
    DO(B7, 4, flags_of(a = x = ram[zp_y()]))
    DO(AF, 4, flags_of(a = x = read_abs()))
    DO(BF, 4, flags_of(a = x = read_abs_y()))
    DO(A3, 6, flags_of(a = x = read_ind_x()))
    DO(B3, 5, flags_of(a = x = read_ind_y()))
    DO(87, 3, ram[byte()] = a & x)
    DO(97, 4, ram[zp_y()] = a & x)
    DO(8F, 4, write(word(), a & x, 3))
    DO(83, 6, write(ind_x(), a & x, 5))
    OP(0B) : OP(2B) : {
        flags_of(a &= byte());
        carry = a >> 7;
        clock += 2;
        NEXT;
    }
    DO(4B, 2, a &= byte(); a = lsr(a))
    DO(6B, 2, {
        a = static_cast<u8>((a & byte()) >> 1 | carry << 7);
        flags_of(a);
        carry = a >> 6 & 1;
        overflow = ((a >> 6 ^ a >> 5) & 1) ? kOverflow : 0;
    })
    DO(8B, 2, flags_of(a = static_cast<u8>((a | 0xEE) & x & byte())))
    DO(AB, 2, flags_of(a = x = byte()))
    DO(CB, 2, {
        const int difference = (a & x) - byte();
        carry = difference >= 0;
        flags_of(x = static_cast<u8>(difference));
    })
    DO(EB, 2, sbc(byte()))
    DO(9C, 5, store_high(word(), x, y, 3))
    DO(9E, 5, store_high(word(), y, x, 3))
    DO(9F, 5, store_high(word(), y, a & x, 3))
    DO(93, 6, store_high(pointer(byte()), y, a & x, 4))
    DO(9B, 5, s = a & x; store_high(word(), y, s, 3))
    DO(BB, 4, flags_of(a = x = s = s & read_abs_y()))
    OP(1A) : OP(3A) : OP(5A) : OP(7A) : OP(DA) : OP(FA) : {
        ++pc;
        clock += 2;
        NEXT;
    }
    OP(80) : OP(82) : OP(89) : OP(C2) : OP(E2) : {
        byte();
        clock += 2;
        NEXT;
    }
    OP(04) : OP(44) : OP(64) : {
        byte();
        clock += 3;
        NEXT;
    }
    OP(14) : OP(34) : OP(54) : OP(74) : OP(D4) : OP(F4) : {
        byte();
        clock += 4;
        NEXT;
    }
    DO(0C, 4, read_abs())
    OP(1C) : OP(3C) : OP(5C) : OP(7C) : OP(DC) : OP(FC) : {
        read_abs_x();
        clock += 4;
        NEXT;
    }
    OP(02) : OP(12) : OP(22) : OP(32) : OP(42) : OP(52) : OP(62) : OP(72) : OP(92) : OP(B2) : OP(D2) : OP(F2) : {
        m.jammed = 1;
        clock = clock < limit ? limit : clock + 1;
        tail = Tail::NoPoll;
        goto leave;
    }

leave:
    m.clock = clock;
    m.pc = pc;
    m.a = a, m.x = x, m.y = y, m.s = s;
    m.p = status(0);
    m.tail = tail;
}

template void execute<true>(Console&);
template void execute<false>(Console&);

}  // namespace wz::cpu
