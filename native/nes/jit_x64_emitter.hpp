#pragma once
#include <vector>

#include "nes/types.hpp"

namespace wz::jit::x64 {

enum Reg : u8 { rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8, r9, r10, r11, r12, r13, r14, r15 };

/// Conditions by their code in Jcc and SETcc; the lowest bit negates.
enum Cond : u8 { kO, kNO, kB, kAE, kE, kNE, kBE, kA, kS, kNS, kL = 12, kGE, kLE, kG };
inline Cond negated(Cond c) { return static_cast<Cond>(c ^ 1); }

/// Two-operand arithmetic, by its code in the instruction set.
enum Alu : u8 { kAdd, kOr, kAdc, kSbb, kAnd, kSub, kXor, kCmp };
enum Shift : u8 { kRol, kRor, kRcl, kRcr, kShl, kShr };

/// [base + index * scale + disp]; `index` is rsp where there is none.
struct Mem {
    Reg base;
    i32 disp = 0;
    Reg index = rsp;
    u8 scale = 0;  ///< as a power of two
};

/// A place in the code, perhaps not known yet.
struct Label {
    u32 id;
};

/// Writes x86-64 instructions into a buffer that will be placed at `origin` of the code memory.
/// Jumps are always relative with 32 bits; labels may lie outside the buffer.
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
    u32 place(Label l) const { return places_[l.id]; }
    /// Fills in every jump; all labels used must be bound by now.
    void resolve() {
        for (const Fixup& f : fixups_) put32_at(f.at, places_[f.target.id] - (origin_ + f.at + 4));
        fixups_.clear();
    }

    // ---- moves; a 32-bit result clears the upper half ----
    void mov32(Reg to, Reg from) { op_rr(0x8B, to, from, false, false); }
    void mov32(Reg to, u32 value) {
        rex(false, 0, 0, to, false);
        put(static_cast<u8>(0xB8 + (to & 7)));
        put32(value);
    }
    void mov64(Reg to, Mem from) { op_rm(0x8B, to, from, true); }
    void mov64(Mem to, Reg from) { op_rm(0x89, from, to, true); }
    void mov64(Reg to, Reg from) { op_rr(0x8B, to, from, true, false); }
    void mov32(Reg to, Mem from) { op_rm(0x8B, to, from, false); }
    void mov32(Mem to, Reg from) { op_rm(0x89, from, to, false); }
    void mov32(Mem to, u32 value) {
        op_rm(0xC7, rax, to, false);
        put32(value);
    }
    void movzx8(Reg to, Mem from) { op_rm2(0xB6, to, from); }
    void movzx16(Reg to, Mem from) { op_rm2(0xB7, to, from); }
    void movzx8(Reg to, Reg from) { op_rr2(0xB6, to, from, from); }
    void mov8(Mem to, Reg from) { op_rm(0x88, from, to, false, true); }
    void mov8(Mem to, u8 value) {
        op_rm(0xC6, rax, to, false);
        put(value);
    }
    void mov16(Mem to, u16 value) {
        put(0x66);
        op_rm(0xC7, rax, to, false);
        put(static_cast<u8>(value));
        put(static_cast<u8>(value >> 8));
    }
    void lea32(Reg to, Mem from) { op_rm(0x8D, to, from, false); }

    // ---- arithmetic ----
    void alu8(Alu op, Reg to, Reg from) { op_rr(static_cast<u8>(op << 3 | 2), to, from, false, true); }
    void alu8(Alu op, Reg to, Mem from) { op_rm(static_cast<u8>(op << 3 | 2), to, from, false, true); }
    void alu8(Alu op, Reg to, u8 value) {
        if (to == rax) {
            put(static_cast<u8>(op << 3 | 4));
        } else {
            rex(false, 0, 0, to, is_high(to));
            put(0x80);
            modrm(3, op, to);
        }
        put(value);
    }
    void alu8(Alu op, Mem to, u8 value) {
        op_rm(0x80, static_cast<Reg>(op), to, false);
        put(value);
    }
    void alu32(Alu op, Reg to, Reg from) { op_rr(static_cast<u8>(op << 3 | 3), to, from, false, false); }
    void alu32(Alu op, Reg to, i32 value) { alu_imm(op, to, value, false); }
    void alu64(Alu op, Reg to, Reg from) { op_rr(static_cast<u8>(op << 3 | 3), to, from, true, false); }
    void alu64(Alu op, Reg to, i32 value) { alu_imm(op, to, value, true); }
    void alu64(Alu op, Reg to, Mem from) { op_rm(static_cast<u8>(op << 3 | 3), to, from, true); }
    void alu16(Alu op, Mem to, u16 value) {
        put(0x66);
        op_rm(0x81, static_cast<Reg>(op), to, false);
        put(static_cast<u8>(value));
        put(static_cast<u8>(value >> 8));
    }
    void test8(Reg a, Reg b) { op_rr(0x84, a, b, false, true); }
    void test32(Reg a, u32 value) {
        rex(false, 0, 0, a, false);
        put(0xF7);
        modrm(3, 0, a);
        put32(value);
    }
    void inc8(Reg r) { one_operand(0xFE, 0, r, true); }
    void dec8(Reg r) { one_operand(0xFE, 1, r, true); }
    void inc8(Mem m) { op_rm(0xFE, static_cast<Reg>(0), m, false); }
    void dec8(Mem m) { op_rm(0xFE, static_cast<Reg>(1), m, false); }
    /// By one bit.
    void shift8(Shift op, Reg r) { one_operand(0xD0, op, r, true); }
    void shift8(Shift op, Reg r, u8 by) {
        one_operand(0xC0, op, r, true);
        put(by);
    }
    void shl32(Reg r, u8 by) {
        one_operand(0xC1, kShl, r, false);
        put(by);
    }

    // ---- flags ----
    /// The carry becomes bit `bit` of the register.
    void bt32(Reg r, u8 bit) {
        rex(false, 0, 0, r, false);
        put(0x0F), put(0xBA);
        modrm(3, 4, r);
        put(bit);
    }
    void setcc(Cond c, Reg to) {
        rex(false, 0, 0, to, is_high(to));
        put(0x0F), put(static_cast<u8>(0x90 + c));
        modrm(3, 0, to);
    }
    void clc() { put(0xF8); }
    void stc() { put(0xF9); }
    void cmc() { put(0xF5); }

    // ---- control ----
    void jmp(Label to) {
        put(0xE9);
        reference(to);
    }
    void jcc(Cond c, Label to) {
        put(0x0F), put(static_cast<u8>(0x80 + c));
        reference(to);
    }
    void jmp(Mem to) { op_rm(0xFF, static_cast<Reg>(4), to, false); }
    void jmp(Reg to) { one_operand(0xFF, 4, to, false); }
    void call(Label to) {
        put(0xE8);
        reference(to);
    }
    void call(Mem to) { op_rm(0xFF, static_cast<Reg>(2), to, false); }
    void ret() { put(0xC3); }
    void push(Reg r) {
        rex(false, 0, 0, r, false);
        put(static_cast<u8>(0x50 + (r & 7)));
    }
    void pop(Reg r) {
        rex(false, 0, 0, r, false);
        put(static_cast<u8>(0x58 + (r & 7)));
    }
    void align(u32 to) {
        while (here() % to) put(0x90);
    }

  private:
    static constexpr u32 kUnknown = ~0u;
    struct Fixup {
        u32 at;  ///< of the 32-bit displacement, within the buffer
        Label target;
    };

    void put(u8 b) { code_.push_back(b); }
    void put32(u32 v) {
        for (int i = 0; i < 4; ++i) put(static_cast<u8>(v >> 8 * i));
    }
    void put32_at(u32 at, u32 v) {
        for (u32 i = 0; i < 4; ++i) code_[at + i] = static_cast<u8>(v >> 8 * i);
    }
    void reference(Label to) {
        fixups_.push_back({static_cast<u32>(code_.size()), to});
        put32(0);
    }
    /// `always`: spl, bpl, sil and dil exist only with the prefix.
    void rex(bool wide, u8 reg, u8 index, u8 base, bool always) {
        const u8 bits =
            static_cast<u8>(wide << 3 | (reg >> 3 & 1) << 2 | (index >> 3 & 1) << 1 | (base >> 3 & 1));
        if (bits || always) put(0x40 | bits);
    }
    void modrm(u8 mod, u8 reg, u8 rm) { put(static_cast<u8>(mod << 6 | (reg & 7) << 3 | (rm & 7))); }
    void op_rr(u8 opcode, Reg reg, Reg rm, bool wide, bool bytes) {
        rex(wide, reg, 0, rm, bytes && (is_high(reg) || is_high(rm)));
        put(opcode);
        modrm(3, reg, rm);
    }
    void op_rr2(u8 opcode, Reg reg, Reg rm, Reg byte) {
        rex(false, reg, 0, rm, is_high(byte));
        put(0x0F), put(opcode);
        modrm(3, reg, rm);
    }
    void one_operand(u8 opcode, u8 extension, Reg r, bool bytes) {
        rex(false, 0, 0, r, bytes && is_high(r));
        put(opcode);
        modrm(3, extension, r);
    }
    void op_rm(u8 opcode, Reg reg, Mem m, bool wide, bool bytes = false) {
        rex(wide, reg, m.index == rsp ? 0 : m.index, m.base, bytes && is_high(reg));
        put(opcode);
        address(reg, m);
    }
    void op_rm2(u8 opcode, Reg reg, Mem m) {
        rex(false, reg, m.index == rsp ? 0 : m.index, m.base, false);
        put(0x0F), put(opcode);
        address(reg, m);
    }
    void alu_imm(Alu op, Reg to, i32 value, bool wide) {
        const bool small = value >= -128 && value <= 127;
        rex(wide, 0, 0, to, false);
        put(small ? 0x83 : 0x81);
        modrm(3, op, to);
        if (small)
            put(static_cast<u8>(value));
        else
            put32(static_cast<u32>(value));
    }
    void address(Reg reg, Mem m) {
        const bool small = m.disp >= -128 && m.disp <= 127;
        const bool none = m.disp == 0 && (m.base & 7) != rbp;
        const u8 mod = none ? 0 : small ? 1 : 2;
        if (m.index != rsp || (m.base & 7) == rsp) {
            modrm(mod, reg, rsp);
            modrm(m.scale, m.index, m.base);
        } else {
            modrm(mod, reg, m.base);
        }
        if (none) return;
        if (small)
            put(static_cast<u8>(m.disp));
        else
            put32(static_cast<u32>(m.disp));
    }
    static bool is_high(Reg r) { return r >= rsp && r <= rdi; }

    u32 origin_;
    std::vector<u8> code_;
    std::vector<u32> places_;
    std::vector<Fixup> fixups_;
};

}  // namespace wz::jit::x64
