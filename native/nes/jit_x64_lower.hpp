#pragma once
#include "nes/jit_lowering.hpp"
#include "nes/jit_x64_registers.hpp"

namespace wz::jit::x64 {

/// Where the 6502's flags are at a point in a trace: in their registers, in the host's flags, or implied by
/// something that is cheaper to keep than to compute.
struct FlagState {
    enum class Nz : u8 {
        InPlace,  ///< kRegNz
        Value,    ///< those of `nz_reg`
        Compare   ///< those of `nz_reg` - `nz_imm`
    };
    Nz nz = Nz::InPlace;
    bool nz_plain = false;  ///< InPlace with nothing above bit 7
    Reg nz_reg = rax;
    u8 nz_imm = 0;
    bool carry_in_place = true;
    i8 carry_value = -1;  ///< when it is known
    // The host's own flags, lost with its next arithmetic.
    bool host_nz = false;
    enum class HostCarry : u8 { None, Same, Inverted } host_carry = HostCarry::None;

    void clobber_host() {
        host_nz = false;
        host_carry = HostCarry::None;
    }
};

/// The instruction's operand, ready for use.
struct Operand {
    enum class Kind : u8 { Immediate, Memory, Register } kind = Kind::Immediate;
    u8 imm = 0;
    Mem mem{rax};
    Reg reg = rax;
};

/// Turns traces into x86-64 code.
class X64Lowering final : public Lowering<Assembler, FlagState> {
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
    void carry_from_host(const Step& s, FlagState::HostCarry sense);
    void carry_to_host(FlagState::HostCarry sense);
    Cond branch_condition(Op op);

    // operands
    Operand operand(const Step& s);
    Mem ram_operand(const Step& s);
    Operand pointer_operand(const Step& s);
    void pay_for_crossing(Reg index, u8 low);
    void call(u32 place, int cycle);
    void leave_unless_below(Reg index, u8 bound, const Step& s);
    void register_address(const Step& s);
    void leave_if_limit_moved(const Step& s);

    void alu(Alu op, Reg to, const Operand& o);
    void modify_byte(const Step& s, Reg r);
    void jump_to_entry(int cycles);
};

}  // namespace wz::jit::x64
