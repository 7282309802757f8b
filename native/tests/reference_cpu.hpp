#pragma once
// The slow console's processor: one bus access a cycle.
#include <cstdint>

namespace reference {

using u8 = std::uint8_t;
using i8 = std::int8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using i64 = std::int64_t;

/// One access a cycle.
struct Bus {
    virtual ~Bus() = default;
    virtual u8 read(u16 addr) = 0;
    virtual void write(u16 addr, u8 value) = 0;
};

enum Flag : u8 { C = 1, Z = 2, I = 4, D = 8, B = 16, U = 32, V = 64, N = 128 };

inline constexpr char kNames[] =
    "BRKORAJAMSLONOPORAASLSLOPHPORAASLANCNOPORAASLSLO"
    "BPLORAJAMSLONOPORAASLSLOCLCORANOPSLONOPORAASLSLO"
    "JSRANDJAMRLABITANDROLRLAPLPANDROLANCBITANDROLRLA"
    "BMIANDJAMRLANOPANDROLRLASECANDNOPRLANOPANDROLRLA"
    "RTIEORJAMSRENOPEORLSRSREPHAEORLSRALRJMPEORLSRSRE"
    "BVCEORJAMSRENOPEORLSRSRECLIEORNOPSRENOPEORLSRSRE"
    "RTSADCJAMRRANOPADCRORRRAPLAADCRORARRJMPADCRORRRA"
    "BVSADCJAMRRANOPADCRORRRASEIADCNOPRRANOPADCRORRRA"
    "NOPSTANOPSAXSTYSTASTXSAXDEYNOPTXAXAASTYSTASTXSAX"
    "BCCSTAJAMSHASTYSTASTXSAXTYASTATXSTASSHYSTASHXSHA"
    "LDYLDALDXLAXLDYLDALDXLAXTAYLDATAXLXALDYLDALDXLAX"
    "BCSLDAJAMLAXLDYLDALDXLAXCLVLDATSXLASLDYLDALDXLAX"
    "CPYCMPNOPDCPCPYCMPDECDCPINYCMPDEXAXSCPYCMPDECDCP"
    "BNECMPJAMDCPNOPCMPDECDCPCLDCMPNOPDCPNOPCMPDECDCP"
    "CPXSBCNOPISCCPXSBCINCISCINXSBCNOPSBCCPXSBCINCISC"
    "BEQSBCJAMISCNOPSBCINCISCSEDSBCNOPISCNOPSBCINCISC";

enum class Mode { Imp, Imm, Zp, ZpX, ZpY, Abs, AbsX, AbsY, IndX, IndY, Ind, Rel };

inline Mode mode_of(u8 op) {
    const int row = op >> 4, column = op & 15;
    const bool odd = row & 1;
    if (op == 0x20) return Mode::Abs;
    if (op == 0x6C) return Mode::Ind;
    switch (column) {
        case 0:
            return odd ? Mode::Rel : row >= 8 ? Mode::Imm : Mode::Imp;
        case 1:
        case 3:
            return odd ? Mode::IndY : Mode::IndX;
        case 2:
            return !odd && row >= 8 ? Mode::Imm : Mode::Imp;
        case 8:
        case 10:
            return Mode::Imp;
        case 9:
            return odd ? Mode::AbsY : Mode::Imm;
        case 11:
            return odd ? Mode::AbsY : Mode::Imm;
        default:
            break;
    }
    const bool by_y = (row == 9 || row == 11) && (column & 2);
    if (column < 8) return odd ? (by_y ? Mode::ZpY : Mode::ZpX) : Mode::Zp;
    return odd ? (by_y ? Mode::AbsY : Mode::AbsX) : Mode::Abs;
}
inline u32 name_of(u8 op) {
    const char* n = kNames + 3 * op;
    return static_cast<u32>(n[0]) << 16 | static_cast<u32>(n[1]) << 8 | static_cast<u32>(n[2]);
}
constexpr u32 name(const char (&n)[4]) {
    return static_cast<u32>(n[0]) << 16 | static_cast<u32>(n[1]) << 8 | static_cast<u32>(n[2]);
}

struct Cpu {
    Bus& bus;
    u16 pc = 0;
    u8 a = 0, x = 0, y = 0, s = 0, p = I | U;
    bool jammed = false;
    // Interrupts: `need_nmi` and `run_irq` as latched at the end of the last cycle, and of the one before.
    bool line_was_high = false, need_nmi = false, need_nmi_before = false, run_irq = false,
         run_irq_before = false;

    explicit Cpu(Bus& b) : bus(b) {}

    /// Called by the bus at the end of every cycle with the state of the interrupt lines.
    void end_cycle(bool nmi, bool irq) {
        need_nmi_before = need_nmi;
        if (nmi && !line_was_high) need_nmi = true;
        line_was_high = nmi;
        run_irq_before = run_irq;
        run_irq = irq && !(p & I);
    }

    u8 rd(int addr) { return bus.read(static_cast<u16>(addr)); }
    void wr(int addr, u8 v) { bus.write(static_cast<u16>(addr), v); }
    void push(u8 v) { wr(0x100 + s--, v); }
    u8 fetch() { return rd(pc++); }
    void set(u8 flag, bool on) { p = static_cast<u8>(on ? p | flag : p & ~flag); }
    void nz(u8 v) {
        set(Z, v == 0);
        set(N, v & 0x80);
    }

    void interrupt() {
        rd(pc);
        rd(pc);
        push(static_cast<u8>(pc >> 8));
        push(static_cast<u8>(pc));
        vector(static_cast<u8>((p & ~B) | U));
    }
    void vector(u8 pushed) {
        // Which handler is decided here: an NMI that came during the sequence takes it over.
        const int at = need_nmi ? 0xFFFA : 0xFFFE;
        if (need_nmi) need_nmi = false;
        push(pushed);
        p |= I;
        const u8 lo = rd(at);
        pc = static_cast<u16>(lo | rd(at + 1) << 8);
    }

    void add(u8 v) {
        const int sum = a + v + (p & C);
        set(V, (a ^ sum) & (v ^ sum) & 0x80);
        set(C, sum > 255);
        a = static_cast<u8>(sum);
        nz(a);
    }
    void compare(u8 reg, u8 v) {
        set(C, reg >= v);
        nz(static_cast<u8>(reg - v));
    }
    u8 shifted(u32 op, u8 v) {
        const bool old = p & C;
        int r = 0;
        if (op == name("ASL") || op == name("ROL")) {
            set(C, v & 0x80);
            r = v * 2 + (op == name("ROL") && old);
        } else {
            set(C, v & 1);
            r = v / 2 + (op == name("ROR") && old ? 0x80 : 0);
        }
        nz(static_cast<u8>(r));
        return static_cast<u8>(r);
    }

    bool interrupted = false;  ///< the last instruction's poll saw an interrupt: its sequence comes next

    /// One instruction, or the sequence that enters an interrupt handler.
    void step() {
        if (interrupted) {
            interrupted = false;
            interrupt();
            return;
        }
        const u8 code = fetch();
        const bool may_interrupt = execute(code);
        interrupted = may_interrupt && (run_irq_before || need_nmi_before);
    }

    bool execute(u8 code) {
        const u32 op = name_of(code);
        const Mode mode = mode_of(code);
        // ---- control ----
        if (op == name("BRK")) {
            rd(pc++);
            push(static_cast<u8>(pc >> 8));
            push(static_cast<u8>(pc));
            vector(static_cast<u8>(p | B | U));
            return false;
        }
        if (op == name("JAM")) {
            rd(pc);
            --pc;
            jammed = true;
            return false;
        }
        if (op == name("JSR")) {
            const u8 lo = fetch();
            rd(0x100 + s);
            push(static_cast<u8>(pc >> 8));
            push(static_cast<u8>(pc));
            pc = static_cast<u16>(lo | rd(pc) << 8);
            return true;
        }
        if (op == name("RTS")) {
            rd(pc);
            rd(0x100 + s);
            const u8 lo = rd(0x100 + ++s);
            pc = static_cast<u16>(lo | rd(0x100 + ++s) << 8);
            fetch();
            return true;
        }
        if (op == name("RTI")) {
            rd(pc);
            rd(0x100 + s);
            p = static_cast<u8>((rd(0x100 + ++s) & ~B) | U);
            const u8 lo = rd(0x100 + ++s);
            pc = static_cast<u16>(lo | rd(0x100 + ++s) << 8);
            return true;
        }
        if (op == name("JMP")) {
            const u8 lo = fetch();
            const u16 at = static_cast<u16>(lo | fetch() << 8);
            if (mode == Mode::Abs) {
                pc = at;
                return true;
            }
            const u8 target = rd(at);
            pc = static_cast<u16>(target | rd((at & 0xFF00) | ((at + 1) & 0xFF)) << 8);
            return true;
        }
        if (mode == Mode::Rel) {
            static constexpr u8 kTested[4] = {N, V, C, Z};
            const bool wanted = code & 0x20;
            const i8 offset = static_cast<i8>(fetch());
            if (static_cast<bool>(p & kTested[code >> 6]) != wanted) return true;
            // The poll of a taken branch happens before its third cycle; only a page fix adds another.
            if (run_irq && !run_irq_before) run_irq = false;
            const bool nmi_late = need_nmi && !need_nmi_before;
            rd(pc);
            const u16 to = static_cast<u16>(pc + offset);
            const bool crossed = (to ^ pc) & 0xFF00;
            if (crossed) rd((pc & 0xFF00) | (to & 0xFF));
            pc = to;
            if (!crossed && nmi_late) need_nmi_before = false;
            return true;
        }
        // ---- stack ----
        if (op == name("PHA") || op == name("PHP")) {
            rd(pc);
            push(op == name("PHA") ? a : static_cast<u8>(p | B | U));
            return true;
        }
        if (op == name("PLA") || op == name("PLP")) {
            rd(pc);
            rd(0x100 + s);
            const u8 v = rd(0x100 + ++s);
            if (op == name("PLA"))
                nz(a = v);
            else
                p = static_cast<u8>((v & ~B) | U);
            return true;
        }
        // ---- one byte ----
        if (mode == Mode::Imp) {
            rd(pc);
            implied(op);
            return true;
        }
        // ---- with an operand ----
        const bool stores = op == name("STA") || op == name("STX") || op == name("STY") ||
                            op == name("SAX") || op == name("SHA") || op == name("SHX") ||
                            op == name("SHY") || op == name("TAS");
        const bool modifies = op == name("ASL") || op == name("LSR") || op == name("ROL") ||
                              op == name("ROR") || op == name("INC") || op == name("DEC") ||
                              op == name("SLO") || op == name("RLA") || op == name("SRE") ||
                              op == name("RRA") || op == name("DCP") || op == name("ISC");
        u16 base = 0, addr = 0;
        bool crossed = false;
        auto index = [&](u8 by) {
            addr = static_cast<u16>(base + by);
            crossed = (addr ^ base) & 0xFF00;
            if (crossed || stores || modifies) rd((base & 0xFF00) | (addr & 0xFF));
        };
        switch (mode) {
            case Mode::Imm:
                addr = pc++;
                break;
            case Mode::Zp:
                addr = fetch();
                break;
            case Mode::ZpX:
            case Mode::ZpY:
                base = fetch();
                rd(base);
                addr = static_cast<u8>(base + (mode == Mode::ZpX ? x : y));
                break;
            case Mode::IndX: {
                const u8 at = fetch();
                rd(at);
                const u8 lo = rd(static_cast<u8>(at + x));
                addr = static_cast<u16>(lo | rd(static_cast<u8>(at + x + 1)) << 8);
                break;
            }
            case Mode::IndY: {
                const u8 at = fetch();
                const u8 lo = rd(at);
                base = static_cast<u16>(lo | rd(static_cast<u8>(at + 1)) << 8);
                index(y);
                break;
            }
            default: {
                const u8 lo = fetch();
                base = addr = static_cast<u16>(lo | fetch() << 8);
                if (mode == Mode::AbsX) index(x);
                if (mode == Mode::AbsY) index(y);
            }
        }
        if (stores) {
            store(op, base, addr, crossed);
        } else if (modifies) {
            const u8 v = rd(addr);
            wr(addr, v);
            wr(addr, modified(op, v));
        } else {
            load(op, rd(addr));
        }
        return true;
    }

    void implied(u32 op) {
        switch (op) {
            case name("CLC"):
                set(C, false);
                break;
            case name("SEC"):
                set(C, true);
                break;
            case name("CLI"):
                set(I, false);
                break;
            case name("SEI"):
                set(I, true);
                break;
            case name("CLV"):
                set(V, false);
                break;
            case name("CLD"):
                set(D, false);
                break;
            case name("SED"):
                set(D, true);
                break;
            case name("TAX"):
                nz(x = a);
                break;
            case name("TXA"):
                nz(a = x);
                break;
            case name("TAY"):
                nz(y = a);
                break;
            case name("TYA"):
                nz(a = y);
                break;
            case name("TSX"):
                nz(x = s);
                break;
            case name("TXS"):
                s = x;
                break;
            case name("INX"):
                nz(++x);
                break;
            case name("INY"):
                nz(++y);
                break;
            case name("DEX"):
                nz(--x);
                break;
            case name("DEY"):
                nz(--y);
                break;
            case name("NOP"):
                break;
            default:
                a = shifted(op, a);
                break;  // ASL, LSR, ROL, ROR of A
        }
    }
    void store(u32 op, u16 base, u16 addr, bool crossed) {
        u8 v = op == name("STX") ? x : op == name("STY") ? y : op == name("STA") ? a : a & x;
        if (op == name("SHX")) v = x;
        if (op == name("SHY")) v = y;
        if (op == name("TAS")) s = a & x;
        const bool high = op == name("SHA") || op == name("SHX") || op == name("SHY") || op == name("TAS");
        if (high) {
            v = static_cast<u8>(v & ((base >> 8) + 1));
            if (crossed) addr = static_cast<u16>(v << 8 | (addr & 0xFF));
        }
        wr(addr, v);
    }
    u8 modified(u32 op, u8 v) {
        switch (op) {
            case name("INC"):
                nz(++v);
                return v;
            case name("DEC"):
                nz(--v);
                return v;
            case name("SLO"):
                nz(a = a | (v = shifted(name("ASL"), v)));
                return v;
            case name("RLA"):
                nz(a = a & (v = shifted(name("ROL"), v)));
                return v;
            case name("SRE"):
                nz(a = a ^ (v = shifted(name("LSR"), v)));
                return v;
            case name("RRA"):
                add(v = shifted(name("ROR"), v));
                return v;
            case name("DCP"):
                compare(a, --v);
                return v;
            case name("ISC"):
                ++v;
                add(static_cast<u8>(255 - v));
                return v;
            default:
                return shifted(op, v);
        }
    }
    void load(u32 op, u8 v) {
        switch (op) {
            case name("LDA"):
                nz(a = v);
                break;
            case name("LDX"):
                nz(x = v);
                break;
            case name("LDY"):
                nz(y = v);
                break;
            case name("LAX"):
                nz(a = x = v);
                break;
            case name("ORA"):
                nz(a = a | v);
                break;
            case name("AND"):
                nz(a = a & v);
                break;
            case name("EOR"):
                nz(a = a ^ v);
                break;
            case name("ADC"):
                add(v);
                break;
            case name("SBC"):
                add(static_cast<u8>(255 - v));
                break;
            case name("CMP"):
                compare(a, v);
                break;
            case name("CPX"):
                compare(x, v);
                break;
            case name("CPY"):
                compare(y, v);
                break;
            case name("BIT"):
                set(Z, !(a & v));
                set(V, v & 0x40);
                set(N, v & 0x80);
                break;
            case name("ANC"):
                nz(a = a & v);
                set(C, a & 0x80);
                break;
            case name("ALR"):
                a = shifted(name("LSR"), a & v);
                break;
            case name("ARR"):
                a = static_cast<u8>((a & v) / 2 + (p & C ? 0x80 : 0));
                nz(a);
                set(C, a & 0x40);
                set(V, static_cast<bool>(a & 0x40) != static_cast<bool>(a & 0x20));
                break;
            case name("XAA"):
                nz(a = (a | 0xEE) & x & v);
                break;
            case name("LXA"):
                nz(a = x = v);
                break;
            case name("AXS"):
                set(C, (a & x) >= v);
                nz(x = static_cast<u8>((a & x) - v));
                break;
            case name("LAS"):
                nz(a = x = s = s & v);
                break;
            default:
                break;  // NOP
        }
    }
};

}  // namespace reference
