#pragma once
// A slow console for the tests, written from the hardware's description and sharing no code with the engine:
// the processor makes one bus access a cycle, the picture unit runs dot by dot, the sound unit counts every
// cycle. What the engine does by forecasts and whole bands of lines must come out the same.
#include <array>
#include <cstdint>
#include <cstring>
#include <vector>

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

/// The picture unit, dot by dot. Background tiles are fetched as one at the eighth dot of their slot, and a
/// line's sprites are chosen at the end of the line before.
struct Ppu {
    const u8* chr;
    std::array<u16, 4> nametable;
    int lines = 262;
    bool drops_dot = true;

    u8 ctrl = 0, mask = 0, mask_next = 0, oam_addr = 0, fine_x = 0, toggle = 0, buffer = 0;
    bool mask_pending = false;
    bool vblank = false, vblank_lost = false, hit = false, overflow = false, odd = false;
    u16 v = 0, t = 0;
    u16 low = 0, high = 0, attr_low = 0, attr_high = 0;
    u8 palette[32] = {}, oam[256] = {}, vram[0x1000] = {};
    u8 bus = 0;
    u32 bus_age[8] = {};
    int line = 0, dot = 0;
    i64 dots = 0;
    u32 frame = 0;         ///< vertical blanks seen
    u8 sprites[256] = {};  ///< slot | 0x20 behind | 0x40 sprite zero
    u8 pixels[240][256] = {};
    u8 emphasis[240] = {};
    /// Drawing was switched on within the line or at the end of the one before: what it shows then hangs on
    /// bits left over in the shift registers, and consoles differ.
    bool unsure[240] = {};

    bool rendering() const { return mask & 0x18; }
    u8& name_byte(u16 addr) { return vram[nametable[(addr >> 10) & 3] + (addr & 0x3FF)]; }

    void coarse_x() {
        if ((v & 31) == 31)
            v = static_cast<u16>((v & ~31) ^ 0x400);
        else
            ++v;
    }
    void fine_y() {
        if ((v & 0x7000) != 0x7000) {
            v = static_cast<u16>(v + 0x1000);
            return;
        }
        v = static_cast<u16>(v & ~0x7000);
        int y = (v & 0x3E0) >> 5;
        if (y == 29) {
            y = 0;
            v ^= 0x800;
        } else {
            y = (y + 1) & 31;
        }
        v = static_cast<u16>((v & ~0x3E0) | y << 5);
    }
    void load_tile() {
        const u8 tile = name_byte(v & 0xFFF);
        const u8 attr = name_byte(static_cast<u16>(0x3C0 | (v & 0xC00) | ((v >> 4) & 0x38) | ((v >> 2) & 7)));
        const int at = ((ctrl & 0x10) ? 0x1000 : 0) + tile * 16 + (v >> 12);
        const int colour = attr >> (((v >> 4) & 4) | (v & 2)) & 3;
        low = static_cast<u16>((low & 0xFF00) | chr[at]);
        high = static_cast<u16>((high & 0xFF00) | chr[at + 8]);
        attr_low = static_cast<u16>((attr_low & 0xFF00) | ((colour & 1) ? 255 : 0));
        attr_high = static_cast<u16>((attr_high & 0xFF00) | ((colour & 2) ? 255 : 0));
        coarse_x();
    }
    void shift() {
        low = static_cast<u16>(low << 1);
        high = static_cast<u16>(high << 1);
        attr_low = static_cast<u16>(attr_low << 1);
        attr_high = static_cast<u16>(attr_high << 1);
    }

    /// Sprite evaluation of dots 65 to 256, one OAM read and one decision every two dots.
    int n = 0, m = 0, found = 0;
    bool evaluated = false;
    void evaluate(int at_dot) {
        if (at_dot == 65) n = m = found = 0, evaluated = false;
        if ((at_dot & 1) || evaluated) return;
        const int height = (ctrl & 0x20) ? 16 : 8;
        const u8 byte = oam[n * 4 + m];
        const bool in_range = line >= byte && line < byte + height;
        if (found < 8) {
            if (m == 0) {
                if (in_range)
                    m = 1;
                else
                    ++n;
            } else if (++m == 4) {
                m = 0;
                ++n;
                ++found;
            }
        } else if (in_range) {
            overflow = true;
            evaluated = true;
        } else {
            ++n;
            m = (m + 1) & 3;
        }
        if (n == 64) evaluated = true;
    }
    void choose_sprites() {
        std::memset(sprites, 0, sizeof sprites);
        const int height = (ctrl & 0x20) ? 16 : 8;
        int taken = 0;
        for (int i = 0; i < 64 && taken < 8; ++i) {
            const u8* o = oam + i * 4;
            int row = line - o[0];
            if (row < 0 || row >= height) continue;
            ++taken;
            if (o[2] & 0x80) row = height - 1 - row;
            int at = height == 16 ? (o[1] & 1) * 0x1000 + (o[1] & 0xFE) * 16 + (row & 8) * 2 + (row & 7)
                                  : ((ctrl & 8) ? 0x1000 : 0) + o[1] * 16 + row;
            for (int k = 0; k < 8; ++k) {
                const int bit = (o[2] & 0x40) ? k : 7 - k;
                const int colour = (chr[at] >> bit & 1) | (chr[at + 8] >> bit & 1) << 1;
                if (colour == 0 || o[3] + k > 255 || sprites[o[3] + k]) continue;
                sprites[o[3] + k] =
                    static_cast<u8>(16 | (o[2] & 3) << 2 | colour | (o[2] & 0x20) | (i == 0 ? 0x40 : 0));
            }
        }
    }

    void pixel() {
        const int px = dot - 1;
        emphasis[line] = mask >> 5;
        const u8 keep = (mask & 1) ? 0x30 : 0x3F;
        if (!rendering()) {
            const u8 entry = (v & 0x3F00) == 0x3F00 ? colour(v) : palette[0];
            pixels[line][px] = entry & keep;
            return;
        }
        int back = 0, front = 0;
        if ((mask & 8) && (px >= 8 || (mask & 2))) {
            const int bit = 15 - fine_x;
            back = (low >> bit & 1) | (high >> bit & 1) << 1 | (attr_low >> bit & 1) << 2 |
                   (attr_high >> bit & 1) << 3;
        }
        if ((mask & 16) && (px >= 8 || (mask & 4))) front = sprites[px];
        const bool solid = back & 3;
        if ((front & 0x40) && solid && px != 255) hit = true;
        int slot = 0;
        if (front && !(solid && (front & 0x20)))
            slot = front & 31;
        else if (solid)
            slot = back;
        pixels[line][px] = palette[slot] & keep;
    }

    void tick() {
        const bool prerender = line == lines - 1;
        if (line < 240 && dot >= 1 && dot <= 256) {
            pixel();
            if (rendering() && dot >= 65) evaluate(dot);
        }
        if ((line < 240 || prerender) && rendering()) {
            const bool fetches = (dot >= 1 && dot <= 256) || (dot >= 321 && dot <= 336);
            if (fetches) {
                shift();
                if (dot % 8 == 0) load_tile();
            }
            if (dot == 256) fine_y();
            if (dot == 257) v = static_cast<u16>((v & ~0x41F) | (t & 0x41F));
            if (dot >= 257 && dot <= 320) oam_addr = 0;
            if (prerender && dot >= 280 && dot <= 304) v = static_cast<u16>((v & ~0x7BE0) | (t & 0x7BE0));
        }
        if (line == 241 && dot == 1) {
            if (!vblank_lost) vblank = true;
            vblank_lost = false;
            ++frame;
        }
        if (prerender && dot == 1) {
            vblank = hit = overflow = false;
            std::memset(unsure, 0, sizeof unsure);
        }
        ++dots;
        const bool dropped = prerender && dot == 339 && odd && drops_dot && rendering();
        if (dot == 320) {
            if (line < 239 && rendering())
                choose_sprites();
            else
                std::memset(sprites, 0, sizeof sprites);
        }
        dot += dropped ? 2 : 1;
        if (dot == 341) {
            dot = 0;
            if (++line == lines) {
                line = 0;
                odd = !odd;
            }
        }
        if (mask_pending) {
            if (!rendering() && (mask_next & 0x18)) {
                if (line < 240) unsure[line] = true;
                if (dot > 256 && line < 239) unsure[line + 1] = true;
                if (dot > 256 && line == lines - 1) unsure[0] = true;
            }
            mask = mask_next;
            mask_pending = false;
        }
    }

    void drive(u8 value, u8 bits = 255) {
        bus = static_cast<u8>((bus & ~bits) | (value & bits));
        for (int i = 0; i < 8; ++i)
            if (bits >> i & 1) bus_age[i] = frame;
    }
    u8 open() const {
        u8 r = 0;
        for (int i = 0; i < 8; ++i)
            if (frame - bus_age[i] < 36) r = static_cast<u8>(r | (bus & 1 << i));
        return r;
    }
    u8& colour(u16 addr) { return palette[(addr & 3) ? addr & 31 : addr & 15]; }
    void bump() {
        if (rendering() && (line < 240 || line == lines - 1)) {
            coarse_x();
            fine_y();
        } else {
            v = static_cast<u16>((v + ((ctrl & 4) ? 32 : 1)) & 0x7FFF);
        }
    }
    u8 read(u16 addr) {
        switch (addr & 7) {
            case 2: {
                const u8 r = static_cast<u8>(vblank << 7 | hit << 6 | overflow << 5);
                drive(r, 0xE0);
                toggle = 0;
                vblank = false;
                if (line == 241 && dot == 1) vblank_lost = true;
                return static_cast<u8>(r | (open() & 0x1F));
            }
            case 4: {
                const bool clearing = rendering() && line < 240 && dot >= 1 && dot <= 64;
                drive(clearing ? 255 : oam[oam_addr]);
                return bus;
            }
            case 7: {
                const u16 at = v & 0x3FFF;
                if (at >= 0x3F00) {
                    const u8 r = static_cast<u8>((colour(at) & ((mask & 1) ? 0x30 : 0x3F)) | (open() & 0xC0));
                    drive(r, 0x3F);
                    buffer = name_byte(at);
                    bump();
                    return r;
                }
                const u8 r = buffer;
                drive(r);
                buffer = at >= 0x2000 ? name_byte(at) : chr[at];
                bump();
                return r;
            }
            default:
                return open();
        }
    }
    void write(u16 addr, u8 value) {
        drive(value);
        switch (addr & 7) {
            case 0:
                ctrl = value;
                t = static_cast<u16>((t & ~0xC00) | (value & 3) << 10);
                break;
            case 1:
                mask_next = value;
                mask_pending = true;
                break;
            case 3:
                oam_addr = value;
                break;
            case 4:
                if (rendering() && (line < 240 || line == lines - 1)) {
                    oam_addr = static_cast<u8>(oam_addr + 4);
                } else {
                    oam[oam_addr] = (oam_addr & 3) == 2 ? value & 0xE3 : value;
                    ++oam_addr;
                }
                break;
            case 5:
                if (!toggle) {
                    fine_x = value & 7;
                    t = static_cast<u16>((t & ~31) | value >> 3);
                } else {
                    t = static_cast<u16>((t & 0x0C1F) | (value & 7) << 12 | (value >> 3) << 5);
                }
                toggle ^= 1;
                break;
            case 6:
                if (!toggle) {
                    t = static_cast<u16>((t & 0xFF) | (value & 0x3F) << 8);
                } else {
                    t = static_cast<u16>((t & 0x7F00) | value);
                    v = t;
                }
                toggle ^= 1;
                break;
            case 7: {
                const u16 at = v & 0x3FFF;
                if (at >= 0x3F00)
                    colour(at) = value & 0x3F;
                else if (at >= 0x2000)
                    name_byte(at) = value;
                bump();
                break;
            }
            default:
                break;
        }
    }
};

/// Frame counter and length counters, a cycle at a time.
struct Apu {
    bool pal = false;
    i64 position = 0;  ///< cycles into the sequence
    int delay = 0;     ///< cycles until a write to $4017 acts
    bool five = false, five_next = false, inhibit = false, irq = false;
    int length[4] = {};
    bool halt[4] = {}, enabled[4] = {};
    bool clocked_now[4] = {};  ///< a running counter was clocked in this cycle

    void half() {
        for (int i = 0; i < 4; ++i)
            if (length[i] && !halt[i]) {
                --length[i];
                clocked_now[i] = true;
            }
    }
    /// The part of a cycle before the processor's access.
    void tick() {
        for (bool& c : clocked_now) c = false;
        ++position;
        const i64* at = nullptr;
        static constexpr i64 kSteps[2][4] = {{14913, 29828, 37281, 37282}, {16627, 33252, 41565, 41566}};
        at = kSteps[pal];
        if (position == at[0]) half();
        if (!five) {
            if (position >= at[1] && !inhibit) irq = true;
            if (position == at[1] + 1) half();
            if (position == at[1] + 2) position = 0;
        } else {
            if (position == at[2]) half();
            if (position == at[3]) position = 0;
        }
        if (delay && --delay == 0) {
            five = five_next;
            position = 0;
            if (five) half();
        }
    }
    u8 read() {
        u8 r = 0;
        for (int i = 0; i < 4; ++i)
            if (length[i]) r = static_cast<u8>(r | 1 << i);
        if (irq) r |= 0x40;
        irq = false;
        return r;
    }
    void write(u16 addr, u8 value, i64 cycle) {
        static constexpr int kLength[32] = {10, 254, 20, 2,  40, 4,  80, 6,  160, 8,  60, 10, 14, 12, 26, 14,
                                            12, 16,  24, 18, 48, 20, 96, 22, 192, 24, 72, 26, 16, 28, 32, 30};
        if (addr == 0x4015) {
            for (int i = 0; i < 4; ++i) {
                enabled[i] = value >> i & 1;
                if (!enabled[i]) length[i] = 0;
            }
        } else if (addr == 0x4017) {
            five_next = value & 0x80;
            inhibit = value & 0x40;
            if (inhibit) irq = false;
            delay = (cycle & 1) ? 4 : 3;
        } else if (addr < 0x4010) {
            const int channel = (addr - 0x4000) / 4;
            if (addr % 4 == 0) halt[channel] = value & (channel == 2 ? 0x80 : 0x20);
            if (addr % 4 == 3 && enabled[channel] && !clocked_now[channel])
                length[channel] = kLength[value >> 3];
        }
    }
};

/// The whole console with a mapper-0 cartridge of 32 KB and character ROM.
struct Console : Bus {
    Cpu cpu{*this};
    Ppu ppu;
    Apu apu;
    std::array<u8, 0x800> ram{};
    std::array<u8, 0x2000> wram{};
    const u8* prg;
    bool pal = false;
    i64 cycle = 0;
    u8 data = 0;  ///< last value on the processor's data bus
    u8 buttons[2] = {}, shift[2] = {}, strobe = 0;
    int dma_page = -1;

    Console(const u8* prg_bytes, const u8* chr, std::array<u16, 4> nametable, bool pal_region,
            const u8* palette)
        : prg(prg_bytes), pal(pal_region) {
        ppu.chr = chr;
        ppu.nametable = nametable;
        std::memcpy(ppu.palette, palette, 32);
        ppu.lines = pal ? 312 : 262;
        ppu.drops_dot = !pal;
        apu.pal = pal;
        apu.position = -2;  // as if $00 had been written to $4017 nine cycles before the first instruction
        cpu.s = 0xFD;
        for (int i = 0; i < 7; ++i) {
            begin();
            end();
        }
        cpu.pc = static_cast<u16>(prg[0x7FFC] | prg[0x7FFD] << 8);
    }

    /// Dots done when the access of a cycle happens, and at its end: a cycle has 12 (PAL 16) clocks, a dot 4
    /// (5).
    void dots_until(i64 clocks) {
        const i64 target = clocks / (pal ? 5 : 4);
        while (ppu.dots < target) ppu.tick();
    }
    void begin() {
        apu.tick();
        dots_until((pal ? 16 : 12) * cycle + (pal ? 6 : 4));
    }
    void end() {
        dots_until((pal ? 16 : 12) * cycle + (pal ? 15 : 11));
        cpu.end_cycle(ppu.vblank && (ppu.ctrl & 0x80), apu.irq);
        ++cycle;
    }

    u8 access(u16 addr) {
        if (addr < 0x2000) return ram[addr & 0x7FF];
        if (addr >= 0x8000) return prg[addr & 0x7FFF];
        if (addr >= 0x6000) return wram[addr & 0x1FFF];
        if (addr < 0x4000) return ppu.read(addr);
        if (addr == 0x4015) return static_cast<u8>(apu.read() | (data & 0x20));
        if (addr == 0x4016 || addr == 0x4017) {
            const int port = addr & 1;
            if (strobe) shift[port] = buttons[port];
            const u8 r = static_cast<u8>(0x40 | (shift[port] & 1));
            if (!strobe) shift[port] = static_cast<u8>(shift[port] >> 1 | 0x80);
            return r;
        }
        return data;
    }
    u8 read(u16 addr) override {
        begin();
        const u8 v = access(addr);
        if (addr != 0x4015) data = v;
        end();
        return v;
    }
    void wait() {
        begin();
        end();
    }
    void write(u16 addr, u8 value) override {
        begin();
        data = value;
        if (addr < 0x2000)
            ram[addr & 0x7FF] = value;
        else if (addr < 0x4000)
            ppu.write(addr, value);
        else if (addr == 0x4014)
            dma_page = value;
        else if (addr == 0x4016) {
            strobe = value & 1;
            if (strobe) shift[0] = buttons[0], shift[1] = buttons[1];
        } else if (addr <= 0x4017)
            apu.write(addr, value, cycle);
        else if (addr >= 0x6000 && addr < 0x8000)
            wram[addr & 0x1FFF] = value;
        end();
    }
    bool strayed = false;  ///< the program ran into addresses where nothing answers

    void step() {
        strayed |= cpu.pc >= 0x4000 && cpu.pc < 0x6000;
        cpu.step();
        if (dma_page < 0) return;
        // The processor stands still before its next read, which comes too late for the poll of this
        // instruction.
        const u16 from = static_cast<u16>(dma_page << 8);
        dma_page = -1;
        wait();
        // Reads fall on the same half of the sound unit's clock as restarts of its sequence.
        if (!(cycle & 1)) wait();
        for (int i = 0; i < 256; ++i) {
            const u8 v = read(static_cast<u16>(from + i));
            begin();
            ppu.write(4, v);
            end();
        }
    }
};

}  // namespace reference
