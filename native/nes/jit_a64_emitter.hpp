#pragma once
#include <vector>

#include "nes/types.hpp"

namespace wz::jit::a64 {

/// Registers by number; the width is the instruction's. 31 is the zero register, or sp in addresses.
// clang-format off
enum Reg : u8 {
    r0, r1, r2, r3, r4, r5, r6, r7, r8, r9, r10, r11, r12, r13, r14, r15, r16, r17, r18, r19, r20, r21, r22, r23, r24,
    r25, r26, r27, r28, r29, r30, zr
};
// clang-format on
enum Cond : u8 { kEq, kNe, kHs, kLo, kMi, kPl, kVs, kVc, kHi, kLs, kGe, kLt, kGt, kLe };
inline Cond negated(Cond c) { return static_cast<Cond>(c ^ 1); }

enum Logic : u32 { kAnd = 0x0A000000, kOrr = 0x2A000000, kEor = 0x4A000000 };

/// A place in the code, perhaps not known yet.
struct Label {
    u32 id;
};

/// Writes AArch64 instructions into a buffer that will be placed at `origin` of the code memory.
/// Only `b` and `bl` reach everywhere; conditional jumps must stay within their trace.
class Assembler {
  public:
    explicit Assembler(u32 origin) : origin_(origin) {}

    /// Where the next instruction goes, counted from the start of the code memory.
    u32 here() const { return origin_ + static_cast<u32>(code_.size()); }
    const std::vector<u8>& code() const { return code_; }

    Label label() {
        places_.push_back(kUnknown);
        return {static_cast<u32>(places_.size() - 1)};
    }
    void bind(Label l) { places_[l.id] = here(); }
    void bind(Label l, u32 place) { places_[l.id] = place; }
    /// Fills in every jump; all labels used must be bound by now.
    void resolve() {
        for (const Fixup& f : fixups_) {
            const u32 distance = (places_[f.target.id] - (origin_ + f.at)) >> 2;
            u32 word;
            std::memcpy(&word, code_.data() + f.at, 4);
            word |= (distance & ((1u << f.bits) - 1)) << f.shift;
            std::memcpy(code_.data() + f.at, &word, 4);
        }
        fixups_.clear();
    }

    // ---- moves; a 32-bit result clears the upper half ----
    void mov(Reg to, u32 value) {
        put(0x52800000 | (value & 0xFFFF) << 5 | to);
        if (value >> 16) put(0x72A00000 | (value >> 16) << 5 | to);
    }
    void mov(Reg to, Reg from) { logic(kOrr, to, zr, from); }
    void mov64(Reg to, Reg from) { put(0xAA0003E0 | u32{from} << 16 | to); }

    // ---- memory; offsets are those of the unsigned, scaled forms ----
    void ldrb(Reg to, Reg base, u32 offset) { put(0x39400000 | offset << 10 | u32{base} << 5 | to); }
    void strb(Reg from, Reg base, u32 offset) { put(0x39000000 | offset << 10 | u32{base} << 5 | from); }
    void ldrb(Reg to, Reg base, Reg index) { put(0x38604800 | u32{index} << 16 | u32{base} << 5 | to); }
    void strb(Reg from, Reg base, Reg index) { put(0x38204800 | u32{index} << 16 | u32{base} << 5 | from); }
    void ldrh(Reg to, Reg base, u32 offset) { put(0x79400000 | offset / 2 << 10 | u32{base} << 5 | to); }
    void strh(Reg from, Reg base, u32 offset) { put(0x79000000 | offset / 2 << 10 | u32{base} << 5 | from); }
    void ldr32(Reg to, Reg base, u32 offset) { put(0xB9400000 | offset / 4 << 10 | u32{base} << 5 | to); }
    void str32(Reg from, Reg base, u32 offset) { put(0xB9000000 | offset / 4 << 10 | u32{base} << 5 | from); }
    void ldr64(Reg to, Reg base, u32 offset) { put(0xF9400000 | offset / 8 << 10 | u32{base} << 5 | to); }
    void str64(Reg from, Reg base, u32 offset) { put(0xF9000000 | offset / 8 << 10 | u32{base} << 5 | from); }
    /// The entry of eight bytes at `index`.
    void ldr64_at(Reg to, Reg base, Reg index) { put(0xF8605800 | u32{index} << 16 | u32{base} << 5 | to); }
    void push(Reg a, Reg b) { put(0xA9BF0000 | u32{b} << 10 | u32{zr} << 5 | a); }
    void pop(Reg a, Reg b) { put(0xA8C10000 | u32{b} << 10 | u32{zr} << 5 | a); }

    // ---- arithmetic ----
    void add(Reg to, Reg a, u32 imm) { put(0x11000000 | imm12(imm) | u32{a} << 5 | to); }
    void sub(Reg to, Reg a, u32 imm) { put(0x51000000 | imm12(imm) | u32{a} << 5 | to); }
    void cmp(Reg a, u32 imm) { put(0x7100001F | imm12(imm) | u32{a} << 5); }
    void add64(Reg to, Reg a, u32 imm) { put(0x91000000 | imm12(imm) | u32{a} << 5 | to); }
    void sub64(Reg to, Reg a, u32 imm) { put(0xD1000000 | imm12(imm) | u32{a} << 5 | to); }
    void cmp64(Reg a, u32 imm) { put(0xF100001F | imm12(imm) | u32{a} << 5); }
    void add(Reg to, Reg a, Reg b, u32 left = 0) {
        put(0x0B000000 | u32{b} << 16 | left << 10 | u32{a} << 5 | to);
    }
    void sub(Reg to, Reg a, Reg b) { put(0x4B000000 | u32{b} << 16 | u32{a} << 5 | to); }
    void subs(Reg to, Reg a, Reg b) { put(0x6B000000 | u32{b} << 16 | u32{a} << 5 | to); }
    void add64(Reg to, Reg a, Reg b) { put(0x8B000000 | u32{b} << 16 | u32{a} << 5 | to); }
    void sub64(Reg to, Reg a, Reg b) { put(0xCB000000 | u32{b} << 16 | u32{a} << 5 | to); }
    void cmp64(Reg a, Reg b) { put(0xEB00001F | u32{b} << 16 | u32{a} << 5); }
    /// A 32-bit index added to an address.
    void add_index(Reg to, Reg base, Reg index) { put(0x8B204000 | u32{index} << 16 | u32{base} << 5 | to); }

    void logic(Logic op, Reg to, Reg a, Reg b, u32 left = 0) {
        put(op | u32{b} << 16 | left << 10 | u32{a} << 5 | to);
    }
    void orr_right(Reg to, Reg a, Reg b, u32 right) {
        put(kOrr | 1u << 22 | u32{b} << 16 | right << 10 | u32{a} << 5 | to);
    }
    /// With `ones` low bits set.
    void eor_low(Reg to, Reg a, u32 ones) { put(0x52000000 | (ones - 1) << 10 | u32{a} << 5 | to); }

    /// `width` bits from bit `low`, moved to bit 0.
    void bits(Reg to, Reg from, u32 low, u32 width) {
        put(0x53000000 | low << 16 | (low + width - 1) << 10 | u32{from} << 5 | to);
    }
    /// The lowest `width` bits, moved to bit `left`.
    void bits_left(Reg to, Reg from, u32 left, u32 width) {
        put(0x53000000 | ((32 - left) & 31) << 16 | (width - 1) << 10 | u32{from} << 5 | to);
    }
    void byte(Reg to, Reg from) { bits(to, from, 0, 8); }
    void shr(Reg to, Reg from, u32 by) { bits(to, from, by, 32 - by); }

    // ---- conditions ----
    void cset(Reg to, Cond c) { put(0x1A9F07E0 | u32{negated(c)} << 12 | to); }
    /// Adds one if the condition holds.
    void cinc64(Reg r, Cond c) { put(0x9A800400 | u32{r} << 16 | u32{negated(c)} << 12 | u32{r} << 5 | r); }

    // ---- control ----
    void b(Label to) { reference(0x14000000, to, 26, 0); }
    void bl(Label to) { reference(0x94000000, to, 26, 0); }
    void b(Cond c, Label to) { reference(0x54000000 | c, to, 19, 5); }
    void cbz(Reg r, Label to) { reference(0x34000000 | r, to, 19, 5); }
    void cbnz(Reg r, Label to) { reference(0x35000000 | r, to, 19, 5); }
    void tbz(Reg r, u32 bit, Label to) { reference(0x36000000 | bit << 19 | r, to, 14, 5); }
    void tbnz(Reg r, u32 bit, Label to) { reference(0x37000000 | bit << 19 | r, to, 14, 5); }
    void br(Reg to) { put(0xD61F0000 | u32{to} << 5); }
    void blr(Reg to) { put(0xD63F0000 | u32{to} << 5); }
    void ret() { put(0xD65F03C0); }
    void align(u32 to) {
        while (here() % to) put(0xD503201F);
    }

  private:
    static constexpr u32 kUnknown = ~0u;
    struct Fixup {
        u32 at;
        Label target;
        u8 bits, shift;
    };

    void put(u32 word) {
        for (int i = 0; i < 4; ++i) code_.push_back(static_cast<u8>(word >> 8 * i));
    }
    /// Values up to 4095, or multiples of 4096 up to 4095 of them.
    static u32 imm12(u32 v) { return v < 0x1000 ? v << 10 : 1u << 22 | (v >> 12) << 10; }
    void reference(u32 word, Label to, u8 bits, u8 shift) {
        fixups_.push_back({static_cast<u32>(code_.size()), to, bits, shift});
        put(word);
    }

    u32 origin_;
    std::vector<u8> code_;
    std::vector<u32> places_;
    std::vector<Fixup> fixups_;
};

}  // namespace wz::jit::a64
