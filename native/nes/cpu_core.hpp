#pragma once
#include "nes/cpu.hpp"
#include "nes/idle.hpp"

namespace wz::cpu {

#define WZ_INLINE __attribute__((always_inline)) inline

/// An opcode from outside the ROM, read in cycle `clock`.
u8 fetch_opcode_slowly(Console& k, u16 pc, i64 clock);

/// The read-modify-write operations.
enum class Modify { asl, lsr, rol, ror, inc, dec, slo, rla, sre, rra, dcp, isc };

/// The registers while instructions run. It lives only inside `execute`, where every method is inlined and
/// every field becomes a host register; flags are kept as the values that they are tested from.
template <bool SkipIdle>
struct Core {
    Console& k;
    Machine& m;
    u8* const ram;
    const u8* const prg;
    i64 clock, limit;
    u16 pc;
    u8 a, x, y, s;
    u8 carry, overflow, rest;
    u8 negative, zero;  // N is bit 7 of one, Z is whether the other is 0
    Tail tail = Tail::Normal;

    WZ_INLINE explicit Core(Console& console)
        : k(console),
          m(console.m),
          ram(m.ram),
          prg(console.cart.prg.data()),
          clock(m.clock),
          limit(m.limit),
          pc(m.pc),
          a(m.a),
          x(m.x),
          y(m.y),
          s(m.s),
          carry(m.p & kCarry),
          overflow(m.p & kOverflow),
          rest(m.p & (kInterrupt | kDecimal)),
          negative(m.p & kNegative),
          zero(!(m.p & kZero)) {}

    WZ_INLINE void store() const {
        m.clock = clock;
        m.pc = pc;
        m.a = a, m.x = x, m.y = y, m.s = s;
        m.p = status(0);
        m.tail = tail;
    }

    // ---- memory; `at` is the access's cycle within the instruction, counted from 0 ----
    WZ_INLINE u8 opcode() {
        if (__builtin_expect(pc >= 0x8000, 1)) return prg[pc & 0x7FFF];
        const u8 v = fetch_opcode_slowly(k, pc, clock);
        limit = m.limit;
        return v;
    }
    WZ_INLINE u8 fetch(u16 addr, int at) {
        if (__builtin_expect(addr >= 0x8000, 1)) return prg[addr & 0x7FFF];
        const u8 v = bus::read_any(k, addr, clock + at);
        limit = m.limit;
        return v;
    }
    WZ_INLINE u8 read(u16 addr, int at) {
        if (addr < 0x2000) return ram[addr & 0x7FF];
        if (addr >= 0x8000) return prg[addr & 0x7FFF];
        const u8 v = bus::read_slow(k, addr, clock + at);
        limit = m.limit;
        return v;
    }
    WZ_INLINE void write(u16 addr, u8 v, int at) {
        if (__builtin_expect(addr < 0x2000, 1)) {
            ram[addr & 0x7FF] = v;
            return;
        }
        clock += bus::write_slow(k, addr, v, clock + at);
        limit = m.limit;
    }
    // An access whose value is thrown away: it matters only to registers.
    WZ_INLINE void dummy_read(u16 addr, int at) {
        if (__builtin_expect(addr >= 0x2000 && addr < 0x4020, 0)) {
            bus::read_slow(k, addr, clock + at);
            limit = m.limit;
        }
    }
    WZ_INLINE void push(u8 v) { ram[0x100 | s--] = v; }
    WZ_INLINE u8 pull() { return ram[0x100 | ++s]; }

    // ---- operands and addresses; each moves pc past the instruction ----
    WZ_INLINE u8 byte() {
        const u8 v = fetch(static_cast<u16>(pc + 1), 1);
        pc = static_cast<u16>(pc + 2);
        return v;
    }
    WZ_INLINE u16 word() {
        const u8 lo = fetch(static_cast<u16>(pc + 1), 1), hi = fetch(static_cast<u16>(pc + 2), 2);
        pc = static_cast<u16>(pc + 3);
        return static_cast<u16>(lo | hi << 8);
    }
    WZ_INLINE u16 pointer(u8 at) { return static_cast<u16>(ram[at] | ram[static_cast<u8>(at + 1)] << 8); }
    WZ_INLINE u8 zp_x() { return static_cast<u8>(byte() + x); }
    WZ_INLINE u8 zp_y() { return static_cast<u8>(byte() + y); }
    WZ_INLINE u16 ind_x() { return pointer(static_cast<u8>(byte() + x)); }
    // Reads through an index take a cycle more when they leave the page, and look at the wrong page first.
    WZ_INLINE u8 indexed_read(u16 base, u8 index, int at) {
        const u16 addr = static_cast<u16>(base + index);
        if ((base ^ addr) & 0xFF00) {
            dummy_read(static_cast<u16>((base & 0xFF00) | (addr & 0xFF)), at);
            ++clock;
            // Where nothing answers, the bus still holds the high byte of the address before the index.
            if (addr >= 0x4018 && addr < 0x6000) return static_cast<u8>(base >> 8);
        }
        return read(addr, at);
    }
    // Writes always take it.
    WZ_INLINE u16 indexed_write_address(u16 base, u8 index, int at) {
        const u16 addr = static_cast<u16>(base + index);
        dummy_read(static_cast<u16>((base & 0xFF00) | (addr & 0xFF)), at);
        return addr;
    }
    WZ_INLINE u8 read_abs() { return read(word(), 3); }
    WZ_INLINE u8 read_abs_x() { return indexed_read(word(), x, 3); }
    WZ_INLINE u8 read_abs_y() { return indexed_read(word(), y, 3); }
    WZ_INLINE u8 read_ind_x() { return read(ind_x(), 5); }
    WZ_INLINE u8 read_ind_y() { return indexed_read(pointer(byte()), y, 4); }

    // ---- what instructions do ----
    WZ_INLINE void flags_of(u8 v) { negative = zero = v; }
    WZ_INLINE void adc(u8 v) {
        const int sum = a + v + carry;
        overflow = static_cast<u8>((~(a ^ v) & (a ^ sum) & 0x80) >> 1);
        carry = static_cast<u8>(sum >> 8);
        flags_of(a = static_cast<u8>(sum));
    }
    WZ_INLINE void sbc(u8 v) { adc(static_cast<u8>(~v)); }
    WZ_INLINE void compare(u8 reg, u8 v) {
        carry = reg >= v;
        flags_of(static_cast<u8>(reg - v));
    }
    WZ_INLINE void bit(u8 v) {
        negative = v;
        overflow = v & kOverflow;
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
    WZ_INLINE u8 slo(u8 v) {
        v = asl(v);
        flags_of(a |= v);
        return v;
    }
    WZ_INLINE u8 rla(u8 v) {
        v = rol(v);
        flags_of(a &= v);
        return v;
    }
    WZ_INLINE u8 sre(u8 v) {
        v = lsr(v);
        flags_of(a ^= v);
        return v;
    }
    WZ_INLINE u8 rra(u8 v) {
        v = ror(v);
        adc(v);
        return v;
    }
    WZ_INLINE u8 dcp(u8 v) {
        compare(a, --v);
        return v;
    }
    WZ_INLINE u8 isc(u8 v) {
        sbc(++v);
        return v;
    }
    template <Modify Op>
    WZ_INLINE u8 apply(u8 v) {
        switch (Op) {
            case Modify::asl:
                return asl(v);
            case Modify::lsr:
                return lsr(v);
            case Modify::rol:
                return rol(v);
            case Modify::ror:
                return ror(v);
            case Modify::inc:
                return inc(v);
            case Modify::dec:
                return dec(v);
            case Modify::slo:
                return slo(v);
            case Modify::rla:
                return rla(v);
            case Modify::sre:
                return sre(v);
            case Modify::rra:
                return rra(v);
            case Modify::dcp:
                return dcp(v);
            case Modify::isc:
                return isc(v);
        }
        __builtin_unreachable();
    }
    // Read, write back unchanged, write the result.
    template <Modify Op>
    WZ_INLINE void modify(u16 addr, int at) {
        if (__builtin_expect(addr < 0x2000, 1)) {
            ram[addr & 0x7FF] = apply<Op>(ram[addr & 0x7FF]);
            return;
        }
        const u8 v = read(addr, at);
        write(addr, v, at + 1);
        write(addr, apply<Op>(v), at + 2);
    }
    WZ_INLINE u8 status(u8 extra) const {
        return static_cast<u8>((negative & 0x80) | overflow | kUnused | rest | (zero ? 0 : kZero) | carry |
                               extra);
    }
    WZ_INLINE void set_status(u8 v) {
        negative = v & kNegative;
        overflow = v & kOverflow;
        rest = v & (kInterrupt | kDecimal);
        zero = !(v & kZero);
        carry = v & kCarry;
    }
    // SHA, SHX, SHY and TAS store a register ANDed with the high byte of the address plus one; when the index
    // leaves the page, that value also becomes the high byte of where it goes.
    WZ_INLINE void store_high(u16 base, u8 index, u8 value, int at) {
        u16 addr = indexed_write_address(base, index, at);
        value = static_cast<u8>(value & ((base >> 8) + 1));
        if ((base ^ addr) & 0xFF00) addr = static_cast<u16>((addr & 0xFF) | value << 8);
        write(addr, value, at + 1);
    }
    WZ_INLINE bool take_branch(u8 offset) {
        const u16 target = static_cast<u16>(pc + static_cast<i8>(offset));
        const bool crossed = (pc ^ target) & 0xFF00;
        if (__builtin_expect(pc < 0x8000, 0)) {
            dummy_read(pc, 2);
            if (crossed) dummy_read(static_cast<u16>((pc & 0xFF00) | (target & 0xFF)), 3);
        }
        clock += 3 + crossed;
        if constexpr (SkipIdle) {
            if (static_cast<u8>(offset - 0xF9) <= 4 && clock < limit && idle::loop_is_in_rom(target)) {
                const u8* loop = prg + (target & 0x7FFF);
                if (offset == 0xFD && (loop[0] == 0xCA || loop[0] == 0x88) && loop[1] == 0xD0) {
                    const i64 length = 5 + crossed;
                    const u8 counter = loop[0] == 0xCA ? x : y;
                    if (const i64 turns = idle::skippable_turns(counter, limit - clock, length)) {
                        const u8 left = static_cast<u8>(counter - turns);
                        if (loop[0] == 0xCA)
                            x = left;
                        else
                            y = left;
                        flags_of(left);
                        clock += turns * length;
                    }
                } else if (idle::polls_status(loop, offset)) {
                    const i64 length = (offset == 0xF9 ? 9 : 7) + crossed;
                    m.limit = limit;
                    clock += length * idle::skippable_polls(k, loop, a, clock, length);
                }
            }
        }
        pc = target;
        return crossed;
    }
};

}  // namespace wz::cpu
