#pragma once
#include "nes/jit_a64_registers.hpp"
#include "nes/jit_lowering.hpp"

namespace wz::jit::a64 {

/// Where the 6502's flags are at a point in a trace: in their registers, or implied by something that is
/// cheaper to keep than to compute. Most branches test a register; only after a comparison do the host's
/// flags help.
struct FlagState {
    enum class Nz : u8 {
        InPlace,  ///< kRegNz
        Value,    ///< those of `nz_reg`
        Compare   ///< those of `nz_reg` - `nz_imm`
    };
    Nz nz = Nz::InPlace;
    bool nz_plain = false;  ///< InPlace with nothing above bit 7
    Reg nz_reg = r0;
    u8 nz_imm = 0;
    bool carry_in_place = true;
    i8 carry_value = -1;         ///< when it is known
    bool host_compared = false;  ///< the host's Z and C are the 6502's
};

/// A byte in memory: at a constant offset, or at an index.
struct Place {
    Reg base = kRam;
    u32 offset = 0;
    Reg index = zr;  ///< zr where there is none
};

/// Turns traces into AArch64 code.
class A64Lowering final : public Lowering<Assembler, FlagState> {
  public:
    using Lowering::Lowering;

  private:
    void check_remaining(int cost, Label otherwise) override;
    void spend(int cycles) override;
    void place_flags(u8 which) override;
    void skip_polls(u16 loop, int turn) override;
    void jump(const Target& to, Label otherwise) override;
    void exit(u16 pc, Exit why) override;
    void branch(const Step& s, Label to, bool jump_if_taken, FlagState& on_taken) override;
    void after_trace() override { cold_exits(); }

    void load(Cpu to, const Step& s) override;
    void store(Cpu from, const Step& s) override;
    void arithmetic(const Step& s) override;
    void compare(Cpu reg, const Step& s) override;
    void bit(const Step& s) override;
    void modify(const Step& s) override;
    void transfer(Cpu to, Cpu from, bool sets_flags) override;
    void count(const Step& s, Cpu reg, u8 times) override;
    void shift(const Step& s, u8 times) override;
    void set_carry(bool value) override;
    void clear_overflow() override;
    void set_decimal(bool value) override;
    void push_a() override;
    void pull_a() override;
    void jsr(const Step& s) override;
    void rts(const Step& s) override;
    void jmp_indirect(const Step& s) override;

    // flags
    void set_nz(Reg r);
    void set_nz_in_place();
    void set_carry_in_place();
    void jump_on_zero(Label to, bool when_zero);
    void jump_on_sign(Label to, bool when_negative);

    // operands
    Reg operand(const Step& s);
    Place ram_operand(const Step& s);
    Place rom_operand(const Step& s);
    Place pointer_operand(const Step& s);
    void read(Reg to, const Place& p);
    void write(Reg from, const Place& p);
    void pay_for_crossing(Reg index, u8 low);
    void call(u32 place, int cycle);
    void leave_unless_below(Reg index, u32 bound, const Step& s);
    void register_address(const Step& s);
    void leave_if_limit_moved(const Step& s);

    void add_with_carry(const Step& s, Reg value);
    void modify_byte(const Step& s, Reg to, Reg from);
    void jump_to_entry(int cycles);
};

}  // namespace wz::jit::a64
