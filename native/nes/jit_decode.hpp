#pragma once
#include <array>

#include "nes/types.hpp"

namespace wz::jit {

/// What an instruction does. Whatever the translator leaves to the interpreter is `Rare`.
// clang-format off
enum class Op : u8 {
    Rare,
    Lda, Ldx, Ldy, Sta, Stx, Sty,
    Ora, And, Eor, Adc, Sbc, Cmp, Cpx, Cpy, Bit,
    Asl, Lsr, Rol, Ror, Inc, Dec,
    Tax, Txa, Tay, Tya, Tsx, Txs, Inx, Iny, Dex, Dey,
    Clc, Sec, Clv, Cld, Sed, Nop, Pha, Pla,
    Jmp, JmpIndirect, Jsr, Rts,
    Bpl, Bmi, Bvc, Bvs, Bcc, Bcs, Bne, Beq
};
// clang-format on

enum class Mode : u8 { Implied, Accumulator, Immediate, Zp, ZpX, ZpY, Abs, AbsX, AbsY, IndY, Relative };

struct Opcode {
    Op op = Op::Rare;
    Mode mode = Mode::Implied;
    u8 cycles = 0;  ///< without what a crossed page or a taken branch adds
};

constexpr int length(Mode m) {
    switch (m) {
        case Mode::Implied:
        case Mode::Accumulator:
            return 1;
        case Mode::Abs:
        case Mode::AbsX:
        case Mode::AbsY:
            return 3;
        default:
            return 2;
    }
}

constexpr bool is_branch(Op op) { return op >= Op::Bpl; }
constexpr bool is_store(Op op) { return op >= Op::Sta && op <= Op::Sty; }
/// Reads memory, writes it back changed (unless the mode is Accumulator).
constexpr bool is_modify(Op op) { return op >= Op::Asl && op <= Op::Dec; }

/// The flags, in the three groups that instructions set together.
enum Flags : u8 { kNoFlags = 0, kNZ = 1, kC = 2, kV = 4, kAllFlags = 7 };

constexpr u8 flags_set(Op op) {
    switch (op) {
        case Op::Adc:
        case Op::Sbc:
            return kAllFlags;
        case Op::Cmp:
        case Op::Cpx:
        case Op::Cpy:
        case Op::Asl:
        case Op::Lsr:
        case Op::Rol:
        case Op::Ror:
            return kNZ | kC;
        case Op::Bit:
            return kNZ | kV;
        case Op::Clc:
        case Op::Sec:
            return kC;
        case Op::Clv:
            return kV;
        case Op::Lda:
        case Op::Ldx:
        case Op::Ldy:
        case Op::Ora:
        case Op::And:
        case Op::Eor:
        case Op::Inc:
        case Op::Dec:
        case Op::Tax:
        case Op::Txa:
        case Op::Tay:
        case Op::Tya:
        case Op::Tsx:
        case Op::Inx:
        case Op::Iny:
        case Op::Dex:
        case Op::Dey:
        case Op::Pla:
            return kNZ;
        default:
            return kNoFlags;
    }
}

constexpr u8 flags_used(Op op) {
    switch (op) {
        case Op::Adc:
        case Op::Sbc:
        case Op::Rol:
        case Op::Ror:
        case Op::Bcc:
        case Op::Bcs:
            return kC;
        case Op::Bvc:
        case Op::Bvs:
            return kV;
        case Op::Bpl:
        case Op::Bmi:
        case Op::Bne:
        case Op::Beq:
            return kNZ;
        default:
            return kNoFlags;
    }
}

namespace detail {
constexpr std::array<Opcode, 256> make_opcodes() {
    std::array<Opcode, 256> t{};
    // The main group: eight operations in eight modes, laid out regularly from a base code.
    const struct {
        u8 base;
        Op op;
    } main_group[] = {{0x00, Op::Ora}, {0x20, Op::And}, {0x40, Op::Eor}, {0x60, Op::Adc},
                      {0x80, Op::Sta}, {0xA0, Op::Lda}, {0xC0, Op::Cmp}, {0xE0, Op::Sbc}};
    for (const auto& [base, op] : main_group) {
        const bool store = op == Op::Sta;  // pays for the indexing whether or not it leaves the page
        if (!store) t[base + 0x09] = {op, Mode::Immediate, 2};
        t[base + 0x05] = {op, Mode::Zp, 3};
        t[base + 0x15] = {op, Mode::ZpX, 4};
        t[base + 0x0D] = {op, Mode::Abs, 4};
        t[base + 0x1D] = {op, Mode::AbsX, static_cast<u8>(4 + store)};
        t[base + 0x19] = {op, Mode::AbsY, static_cast<u8>(4 + store)};
        t[base + 0x11] = {op, Mode::IndY, static_cast<u8>(5 + store)};
    }
    const struct {
        u8 base;
        Op op;
    } modify_group[] = {{0x06, Op::Asl}, {0x26, Op::Rol}, {0x46, Op::Lsr},
                        {0x66, Op::Ror}, {0xC6, Op::Dec}, {0xE6, Op::Inc}};
    for (const auto& [base, op] : modify_group) {
        t[base] = {op, Mode::Zp, 5};
        t[base + 0x10] = {op, Mode::ZpX, 6};
        t[base + 0x08] = {op, Mode::Abs, 6};
        t[base + 0x18] = {op, Mode::AbsX, 7};
        if (base < 0x80) t[base + 0x04] = {op, Mode::Accumulator, 2};
    }
    t[0xA2] = {Op::Ldx, Mode::Immediate, 2}, t[0xA6] = {Op::Ldx, Mode::Zp, 3};
    t[0xB6] = {Op::Ldx, Mode::ZpY, 4}, t[0xAE] = {Op::Ldx, Mode::Abs, 4}, t[0xBE] = {Op::Ldx, Mode::AbsY, 4};
    t[0xA0] = {Op::Ldy, Mode::Immediate, 2}, t[0xA4] = {Op::Ldy, Mode::Zp, 3};
    t[0xB4] = {Op::Ldy, Mode::ZpX, 4}, t[0xAC] = {Op::Ldy, Mode::Abs, 4}, t[0xBC] = {Op::Ldy, Mode::AbsX, 4};
    t[0x86] = {Op::Stx, Mode::Zp, 3}, t[0x96] = {Op::Stx, Mode::ZpY, 4}, t[0x8E] = {Op::Stx, Mode::Abs, 4};
    t[0x84] = {Op::Sty, Mode::Zp, 3}, t[0x94] = {Op::Sty, Mode::ZpX, 4}, t[0x8C] = {Op::Sty, Mode::Abs, 4};
    t[0xE0] = {Op::Cpx, Mode::Immediate, 2}, t[0xE4] = {Op::Cpx, Mode::Zp, 3},
    t[0xEC] = {Op::Cpx, Mode::Abs, 4};
    t[0xC0] = {Op::Cpy, Mode::Immediate, 2}, t[0xC4] = {Op::Cpy, Mode::Zp, 3},
    t[0xCC] = {Op::Cpy, Mode::Abs, 4};
    t[0x24] = {Op::Bit, Mode::Zp, 3}, t[0x2C] = {Op::Bit, Mode::Abs, 4};
    const struct {
        u8 code;
        Op op;
        u8 cycles;
    } implied[] = {{0xAA, Op::Tax, 2}, {0x8A, Op::Txa, 2}, {0xA8, Op::Tay, 2}, {0x98, Op::Tya, 2},
                   {0xBA, Op::Tsx, 2}, {0x9A, Op::Txs, 2}, {0xE8, Op::Inx, 2}, {0xC8, Op::Iny, 2},
                   {0xCA, Op::Dex, 2}, {0x88, Op::Dey, 2}, {0x18, Op::Clc, 2}, {0x38, Op::Sec, 2},
                   {0xB8, Op::Clv, 2}, {0xD8, Op::Cld, 2}, {0xF8, Op::Sed, 2}, {0xEA, Op::Nop, 2},
                   {0x48, Op::Pha, 3}, {0x68, Op::Pla, 4}, {0x60, Op::Rts, 6}};
    for (const auto& [code, op, cycles] : implied) t[code] = {op, Mode::Implied, cycles};
    t[0x4C] = {Op::Jmp, Mode::Abs, 3}, t[0x6C] = {Op::JmpIndirect, Mode::Abs, 5};
    t[0x20] = {Op::Jsr, Mode::Abs, 6};
    const Op branches[] = {Op::Bpl, Op::Bmi, Op::Bvc, Op::Bvs, Op::Bcc, Op::Bcs, Op::Bne, Op::Beq};
    for (int i = 0; i < 8; ++i) t[0x10 + 0x20 * i] = {branches[i], Mode::Relative, 2};
    return t;
}
}  // namespace detail

inline constexpr std::array<Opcode, 256> kOpcodes = detail::make_opcodes();

}  // namespace wz::jit
