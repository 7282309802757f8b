#include "compat/console.hpp"

namespace wz::compat::cpu {

#define WZ_INLINE __attribute__((always_inline)) inline

namespace {

enum : u8 {
    kNegative = 1,
    kOverflow = 2,
    kRest = 0x3C,
    kInterrupt = 0x20,
    kDecimal = 0x10,
    kZero = 0x40,
    kCarry = 0x80
};

/// The registers while instructions run: every method is inlined and every field becomes a host register.
/// An instruction does all its reading and writing in its first cycle, and `clock` moves on at its end.
template <bool SkipIdle>
struct Core {
    Console& k;
    State& m;
    u8* const ram;
    const u8* const prg;
    const i64 limit;
    i64 clock;
    u16 pc;
    u8 a, x, y, s, carry, overflow, rest, negative, zero;  // N is bit 7 of one, Z is whether the other is 0

    WZ_INLINE Core(Console& console, i64 until)
        : k(console),
          m(console.state),
          ram(m.shell.ram),
          prg(console.cartridge->prg.data()),
          limit(until),
          clock(m.clock),
          pc(m.pc),
          a(m.a),
          x(m.x),
          y(m.y),
          s(m.s),
          carry(m.p >> 7),
          overflow(m.p >> 1 & 1),
          rest(m.p & kRest),
          negative(static_cast<u8>(m.p << 7)),
          zero(!(m.p & kZero)) {}
    WZ_INLINE void store() const {
        m.clock = clock;
        m.pc = pc;
        m.a = a, m.x = x, m.y = y, m.s = s, m.p = status();
    }
    WZ_INLINE u8 status() const {
        return static_cast<u8>(negative >> 7 | overflow << 1 | rest | (zero ? 0 : kZero) | carry << 7);
    }
    WZ_INLINE void set_status(u8 v) {
        negative = static_cast<u8>(v << 7);
        overflow = v >> 1 & 1;
        rest = v & kRest;
        zero = !(v & kZero);
        carry = v >> 7;
    }

    WZ_INLINE u8 read(u16 addr) {
        if (addr < 0x2000) return ram[addr & 0x7FF];
        if (addr >= 0x8000) return prg[addr & 0x7FFF];
        return read_register(k, addr, clock);
    }
    WZ_INLINE void write(u16 addr, u8 v) {
        if (__builtin_expect(addr < 0x2000, 1))
            ram[addr & 0x7FF] = v;
        else
            stall += write_register(k, addr, v, clock);
    }
    int stall = 0;  ///< cycles that a write costs beyond its instruction
    WZ_INLINE u8 code(u16 addr) {
        if (__builtin_expect(addr >= 0x8000, 1)) return prg[addr & 0x7FFF];
        return read(addr);
    }
    WZ_INLINE void push(u8 v) { ram[0x100 | s--] = v; }
    WZ_INLINE u8 pull() { return ram[0x100 | ++s]; }

    WZ_INLINE u8 byte() {
        const u8 v = code(static_cast<u16>(pc + 1));
        pc = static_cast<u16>(pc + 2);
        return v;
    }
    WZ_INLINE u16 word() {
        const u8 low = code(static_cast<u16>(pc + 1)), high = code(static_cast<u16>(pc + 2));
        pc = static_cast<u16>(pc + 3);
        return static_cast<u16>(low | high << 8);
    }
    WZ_INLINE u16 pointer(u8 at) { return static_cast<u16>(ram[at] | ram[static_cast<u8>(at + 1)] << 8); }
    WZ_INLINE u16 indexed(u16 base, u8 index, int& crossed) {
        const u16 addr = static_cast<u16>(base + index);
        crossed = ((base ^ addr) & 0xFF00) != 0;
        return addr;
    }

    WZ_INLINE void flags_of(u8 v) { negative = zero = v; }
    WZ_INLINE void adc(u8 v) {
        const int sum = a + v + carry;
        overflow = static_cast<u8>((~(a ^ v) & (a ^ sum) & 0x80) >> 7);
        carry = static_cast<u8>(sum >> 8);
        flags_of(a = static_cast<u8>(sum));
    }
    WZ_INLINE void compare(u8 reg, u8 v) {
        carry = reg >= v;
        flags_of(static_cast<u8>(reg - v));
    }
    WZ_INLINE void bit(u8 v) {
        negative = v;
        overflow = v >> 6 & 1;
        zero = a & v;
    }
    WZ_INLINE u8 asl(u8 v) {
        carry = v >> 7;
        flags_of(v = static_cast<u8>(v << 1));
        return v;
    }
    WZ_INLINE u8 lsr(u8 v) {
        carry = v & 1;
        flags_of(v = v >> 1);
        return v;
    }
    WZ_INLINE u8 rol(u8 v) {
        const u8 in = carry;
        carry = v >> 7;
        flags_of(v = static_cast<u8>(v << 1 | in));
        return v;
    }
    WZ_INLINE u8 ror(u8 v) {
        const u8 in = static_cast<u8>(carry << 7);
        carry = v & 1;
        flags_of(v = static_cast<u8>(v >> 1 | in));
        return v;
    }
    WZ_INLINE u8 inc(u8 v) {
        flags_of(++v);
        return v;
    }
    WZ_INLINE u8 dec(u8 v) {
        flags_of(--v);
        return v;
    }

    /// pc is behind the branch. A branch into another page costs two cycles more, one too many.
    WZ_INLINE void branch(u8 offset) {
        const u16 target = static_cast<u16>(pc + static_cast<i8>(offset));
        clock += ((pc ^ target) & 0xFF00) ? 5 : 3;
        pc = target;
        if constexpr (SkipIdle)
            if (offset == 0xF9 && target >= 0x8000) skip_polls();
    }
    /// LDA $2002 / AND #mask / Bxx that has just gone round: pass over the turns that read the same again.
    WZ_INLINE void skip_polls() {
        const u8* loop = prg + (pc & 0x7FFF);
        if (loop[0] != 0xAD || loop[1] != 0x02 || loop[2] != 0x20 || loop[3] != 0x29) return;
        if (a != (m.status & loop[4]) || zero != a || negative != a) return;
        const i64 turn = 9 + 2 * (((pc + 7) ^ pc) >> 8 & 1);
        clock += compat::skip_polls(k, clock, turn, limit);
    }
};

}  // namespace

void interrupt(Console& k) {
    State& m = k.state;
    m.shell.ram[0x100 | m.s--] = static_cast<u8>(m.pc >> 8);
    m.shell.ram[0x100 | m.s--] = static_cast<u8>(m.pc);
    m.shell.ram[0x100 | m.s--] = m.p | kInterrupt;
    m.p |= kInterrupt;
    m.pc = static_cast<u16>(k.cartridge->prg[0x7FFA] | k.cartridge->prg[0x7FFB] << 8);
    m.clock += 7;
}

template <bool SkipIdle>
void execute(Console& k, i64 limit) {
    Core<SkipIdle> c(k, limit);

#define OP(code) L_##code
#define NEXT                                                   \
    do {                                                       \
        if (__builtin_expect(c.clock >= limit, 0)) goto leave; \
        goto* table[c.code(c.pc)];                             \
    } while (0)
#define DO(code, cycles, ...) \
    OP(code) : {              \
        __VA_ARGS__;          \
        c.clock += (cycles);  \
        NEXT;                 \
    }
#define IMPLIED(code, ...) DO(code, 2, ++c.pc; __VA_ARGS__)
// A write may reach a register that stops the CPU.
#define WRITE(code, cycles, address, value) \
    OP(code) : {                            \
        const u16 to = (address);           \
        c.write(to, value);                 \
        c.clock += (cycles) + c.stall;      \
        c.stall = 0;                        \
        NEXT;                               \
    }
#define READ_INDEXED(code, cycles, base, index, ...)      \
    OP(code) : {                                          \
        int crossed;                                      \
        const u16 from = c.indexed(base, index, crossed); \
        const u8 v = c.read(from);                        \
        __VA_ARGS__;                                      \
        c.clock += (cycles) + crossed;                    \
        NEXT;                                             \
    }
#define READ_GROUP(imm, zp, zpx, abs, absx, absy, indx, indy, ...)                            \
    DO(imm, 2, const u8 v = c.byte(); __VA_ARGS__)                                            \
    DO(zp, 3, const u8 v = c.ram[c.byte()]; __VA_ARGS__)                                      \
    DO(zpx, 4, const u8 v = c.ram[static_cast<u8>(c.byte() + c.x)]; __VA_ARGS__)              \
    DO(abs, 4, const u8 v = c.read(c.word()); __VA_ARGS__)                                    \
    READ_INDEXED(absx, 4, c.word(), c.x, __VA_ARGS__)                                         \
    READ_INDEXED(absy, 4, c.word(), c.y, __VA_ARGS__)                                         \
    DO(indx, 6, const u8 v = c.read(c.pointer(static_cast<u8>(c.byte() + c.x))); __VA_ARGS__) \
    READ_INDEXED(indy, 5, c.pointer(c.byte()), c.y, __VA_ARGS__)
// Read-modify-write: leaving the page with X costs a cycle, which the hardware always takes.
#define MODIFY(code, cycles, address, op)        \
    OP(code) : {                                 \
        int crossed = 0;                         \
        const u16 at = (address);                \
        c.write(at, c.op(c.read(at)));           \
        c.clock += (cycles) + crossed + c.stall; \
        c.stall = 0;                             \
        NEXT;                                    \
    }
#define MODIFY_GROUP(zp, zpx, abs, absx, op)                                               \
    DO(zp, 5, const u8 at = c.byte(); c.ram[at] = c.op(c.ram[at]))                         \
    DO(zpx, 6, const u8 at = static_cast<u8>(c.byte() + c.x); c.ram[at] = c.op(c.ram[at])) \
    MODIFY(abs, 6, c.word(), op)                                                           \
    MODIFY(absx, 7, c.indexed(c.word(), c.x, crossed), op)
#define BRANCH(code, condition)     \
    OP(code) : {                    \
        const u8 offset = c.byte(); \
        if (condition)              \
            c.branch(offset);       \
        else                        \
            c.clock += 2;           \
        NEXT;                       \
    }

    // Opcodes that nes-py does not execute take a cycle and do nothing.
    static const void* const table[256] = {
        &&L_00, &&L_01, &&bad,  &&bad, &&bad,  &&L_05, &&L_06, &&bad, &&L_08, &&L_09, &&L_0A, &&bad,
        &&bad,  &&L_0D, &&L_0E, &&bad, &&L_10, &&L_11, &&bad,  &&bad, &&bad,  &&L_15, &&L_16, &&bad,
        &&L_18, &&L_19, &&bad,  &&bad, &&bad,  &&L_1D, &&L_1E, &&bad, &&L_20, &&L_21, &&bad,  &&bad,
        &&L_24, &&L_25, &&L_26, &&bad, &&L_28, &&L_29, &&L_2A, &&bad, &&L_2C, &&L_2D, &&L_2E, &&bad,
        &&L_30, &&L_31, &&bad,  &&bad, &&bad,  &&L_35, &&L_36, &&bad, &&L_38, &&L_39, &&bad,  &&bad,
        &&bad,  &&L_3D, &&L_3E, &&bad, &&L_40, &&L_41, &&bad,  &&bad, &&bad,  &&L_45, &&L_46, &&bad,
        &&L_48, &&L_49, &&L_4A, &&bad, &&L_4C, &&L_4D, &&L_4E, &&bad, &&L_50, &&L_51, &&bad,  &&bad,
        &&bad,  &&L_55, &&L_56, &&bad, &&L_58, &&L_59, &&bad,  &&bad, &&bad,  &&L_5D, &&L_5E, &&bad,
        &&L_60, &&L_61, &&bad,  &&bad, &&bad,  &&L_65, &&L_66, &&bad, &&L_68, &&L_69, &&L_6A, &&bad,
        &&L_6C, &&L_6D, &&L_6E, &&bad, &&L_70, &&L_71, &&bad,  &&bad, &&bad,  &&L_75, &&L_76, &&bad,
        &&L_78, &&L_79, &&bad,  &&bad, &&bad,  &&L_7D, &&L_7E, &&bad, &&bad,  &&L_81, &&bad,  &&bad,
        &&L_84, &&L_85, &&L_86, &&bad, &&L_88, &&bad,  &&L_8A, &&bad, &&L_8C, &&L_8D, &&L_8E, &&bad,
        &&L_90, &&L_91, &&bad,  &&bad, &&L_94, &&L_95, &&L_96, &&bad, &&L_98, &&L_99, &&L_9A, &&bad,
        &&bad,  &&L_9D, &&bad,  &&bad, &&L_A0, &&L_A1, &&L_A2, &&bad, &&L_A4, &&L_A5, &&L_A6, &&bad,
        &&L_A8, &&L_A9, &&L_AA, &&bad, &&L_AC, &&L_AD, &&L_AE, &&bad, &&L_B0, &&L_B1, &&bad,  &&bad,
        &&L_B4, &&L_B5, &&L_B6, &&bad, &&L_B8, &&L_B9, &&L_BA, &&bad, &&L_BC, &&L_BD, &&L_BE, &&bad,
        &&L_C0, &&L_C1, &&bad,  &&bad, &&L_C4, &&L_C5, &&L_C6, &&bad, &&L_C8, &&L_C9, &&L_CA, &&bad,
        &&L_CC, &&L_CD, &&L_CE, &&bad, &&L_D0, &&L_D1, &&bad,  &&bad, &&bad,  &&L_D5, &&L_D6, &&bad,
        &&L_D8, &&L_D9, &&bad,  &&bad, &&bad,  &&L_DD, &&L_DE, &&bad, &&L_E0, &&L_E1, &&bad,  &&bad,
        &&L_E4, &&L_E5, &&L_E6, &&bad, &&L_E8, &&L_E9, &&L_EA, &&bad, &&L_EC, &&L_ED, &&L_EE, &&bad,
        &&L_F0, &&L_F1, &&bad,  &&bad, &&bad,  &&L_F5, &&L_F6, &&bad, &&L_F8, &&L_F9, &&bad,  &&bad,
        &&bad,  &&L_FD, &&L_FE, &&bad};

    NEXT;

    READ_GROUP(09, 05, 15, 0D, 1D, 19, 01, 11, c.flags_of(c.a |= v))
    READ_GROUP(29, 25, 35, 2D, 3D, 39, 21, 31, c.flags_of(c.a &= v))
    READ_GROUP(49, 45, 55, 4D, 5D, 59, 41, 51, c.flags_of(c.a ^= v))
    READ_GROUP(69, 65, 75, 6D, 7D, 79, 61, 71, c.adc(v))
    READ_GROUP(A9, A5, B5, AD, BD, B9, A1, B1, c.flags_of(c.a = v))
    READ_GROUP(C9, C5, D5, CD, DD, D9, C1, D1, c.compare(c.a, v))
    READ_GROUP(E9, E5, F5, ED, FD, F9, E1, F1, c.adc(static_cast<u8>(~v)))
    MODIFY_GROUP(06, 16, 0E, 1E, asl)
    MODIFY_GROUP(26, 36, 2E, 3E, rol)
    MODIFY_GROUP(46, 56, 4E, 5E, lsr)
    MODIFY_GROUP(66, 76, 6E, 7E, ror)
    MODIFY_GROUP(C6, D6, CE, DE, dec)
    MODIFY_GROUP(E6, F6, EE, FE, inc)
    IMPLIED(0A, c.a = c.asl(c.a))
    IMPLIED(2A, c.a = c.rol(c.a))
    IMPLIED(4A, c.a = c.lsr(c.a))
    IMPLIED(6A, c.a = c.ror(c.a))

    DO(85, 3, c.ram[c.byte()] = c.a)
    DO(95, 4, c.ram[static_cast<u8>(c.byte() + c.x)] = c.a)
    WRITE(8D, 4, c.word(), c.a)
    WRITE(9D, 5, static_cast<u16>(c.word() + c.x), c.a)
    WRITE(99, 5, static_cast<u16>(c.word() + c.y), c.a)
    WRITE(81, 6, c.pointer(static_cast<u8>(c.byte() + c.x)), c.a)
    WRITE(91, 6, static_cast<u16>(c.pointer(c.byte()) + c.y), c.a)
    DO(86, 3, c.ram[c.byte()] = c.x)
    DO(96, 4, c.ram[static_cast<u8>(c.byte() + c.y)] = c.x)
    WRITE(8E, 4, c.word(), c.x)
    DO(84, 3, c.ram[c.byte()] = c.y)
    DO(94, 4, c.ram[static_cast<u8>(c.byte() + c.x)] = c.y)
    WRITE(8C, 4, c.word(), c.y)

    DO(A2, 2, c.flags_of(c.x = c.byte()))
    DO(A6, 3, c.flags_of(c.x = c.ram[c.byte()]))
    DO(B6, 4, c.flags_of(c.x = c.ram[static_cast<u8>(c.byte() + c.y)]))
    DO(AE, 4, c.flags_of(c.x = c.read(c.word())))
    READ_INDEXED(BE, 4, c.word(), c.y, c.flags_of(c.x = v))
    DO(A0, 2, c.flags_of(c.y = c.byte()))
    DO(A4, 3, c.flags_of(c.y = c.ram[c.byte()]))
    DO(B4, 4, c.flags_of(c.y = c.ram[static_cast<u8>(c.byte() + c.x)]))
    DO(AC, 4, c.flags_of(c.y = c.read(c.word())))
    READ_INDEXED(BC, 4, c.word(), c.x, c.flags_of(c.y = v))
    DO(E0, 2, c.compare(c.x, c.byte()))
    DO(E4, 3, c.compare(c.x, c.ram[c.byte()]))
    DO(EC, 4, c.compare(c.x, c.read(c.word())))
    DO(C0, 2, c.compare(c.y, c.byte()))
    DO(C4, 3, c.compare(c.y, c.ram[c.byte()]))
    DO(CC, 4, c.compare(c.y, c.read(c.word())))
    DO(24, 3, c.bit(c.ram[c.byte()]))
    DO(2C, 4, c.bit(c.read(c.word())))

    IMPLIED(AA, c.flags_of(c.x = c.a))
    IMPLIED(8A, c.flags_of(c.a = c.x))
    IMPLIED(A8, c.flags_of(c.y = c.a))
    IMPLIED(98, c.flags_of(c.a = c.y))
    IMPLIED(BA, c.flags_of(c.x = c.s))
    IMPLIED(9A, c.s = c.x)
    IMPLIED(E8, c.flags_of(++c.x))
    IMPLIED(CA, c.flags_of(--c.x))
    IMPLIED(C8, c.flags_of(++c.y))
    IMPLIED(88, c.flags_of(--c.y))
    IMPLIED(18, c.carry = 0)
    IMPLIED(38, c.carry = 1)
    IMPLIED(58, c.rest &= static_cast<u8>(~kInterrupt))
    IMPLIED(78, c.rest |= kInterrupt)
    IMPLIED(B8, c.overflow = 0)
    IMPLIED(D8, c.rest &= static_cast<u8>(~kDecimal))
    IMPLIED(F8, c.rest |= kDecimal)
    IMPLIED(EA, )

    DO(48, 3, ++c.pc; c.push(c.a))
    DO(68, 4, ++c.pc; c.flags_of(c.a = c.pull()))
    DO(08, 3, ++c.pc; c.push(c.status()))
    DO(28, 4, ++c.pc; c.set_status(c.pull()))
    DO(20, 6, const u16 to = c.word(); c.push(static_cast<u8>((c.pc - 1) >> 8));
       c.push(static_cast<u8>(c.pc - 1)); c.pc = to)
    DO(60, 6, c.pc = c.pull(); c.pc = static_cast<u16>((c.pc | c.pull() << 8) + 1))
    DO(40, 6, c.set_status(c.pull()); c.pc = c.pull(); c.pc = static_cast<u16>(c.pc | c.pull() << 8))
    // An interrupt by BRK adds its seven cycles to the opcode's own.
    DO(00, 14, c.pc = static_cast<u16>(c.pc + 2); c.push(static_cast<u8>(c.pc >> 8));
       c.push(static_cast<u8>(c.pc)); c.push(c.status() | kInterrupt | kDecimal); c.rest |= kInterrupt;
       c.pc = static_cast<u16>(c.prg[0x7FFE] | c.prg[0x7FFF] << 8))
    OP(4C) : {
        const u16 from = c.pc;
        c.pc = c.word();
        c.clock += 3;
        // A jump to itself waits for an interrupt.
        if (SkipIdle && c.pc == from && c.clock < limit) c.clock += (limit - c.clock + 2) / 3 * 3;
        NEXT;
    }
    DO(6C, 5, const u16 at = c.word();
       c.pc = static_cast<u16>(c.read(at) | c.read(static_cast<u16>((at & 0xFF00) | ((at + 1) & 0xFF))) << 8))

    BRANCH(10, !(c.negative & 0x80))
    BRANCH(30, c.negative & 0x80)
    BRANCH(50, !c.overflow)
    BRANCH(70, c.overflow)
    BRANCH(90, !c.carry)
    BRANCH(B0, c.carry)
    BRANCH(D0, c.zero)
    BRANCH(F0, !c.zero)

bad:
    ++c.pc;
    ++c.clock;
    NEXT;

leave:
    c.store();
}

template void execute<true>(Console&, i64);
template void execute<false>(Console&, i64);

}  // namespace wz::compat::cpu
