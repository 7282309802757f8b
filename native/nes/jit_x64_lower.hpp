#pragma once
#include <span>

#include "nes/jit_backend.hpp"
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
class Lowering {
  public:
    Lowering(Assembler& a, const Runtime& runtime, const Prg& prg, const std::vector<Trace>& traces,
             const Blocks& known);
    /// Emits all traces.
    void run(std::vector<Block>& blocks);

  private:
    struct Target {
        Label label;
        u16 cost;
        u8 live;
    };
    /// An exit that is rarely taken: emitted behind all traces, out of the way.
    struct ColdExit {
        Label from;
        FlagState flags;
        u16 pc;
        Exit exit;
        int cycles;
    };
    /// A jump to another trace, emitted behind this one.
    struct SideEdge {
        Label from;
        FlagState flags;
        u16 target;
        int cycles, poll;
    };

    void trace(const Trace& t, Block& block);
    std::size_t steps(std::span<const Step> rest);
    void step(const Step& s);
    void branch(const Step& s);
    void finish(const Trace& t);
    void side_edges();
    void cold_exits();

    // exits
    void edge(u16 target, int cycles, int poll);
    void leave(u16 pc, Exit exit, int cycles);
    Label cold_exit(u16 pc, Exit exit, int cycles);
    void jump_to_entry(int cycles);

    // flags
    void place_nz();
    void place_carry();
    void set_nz(Reg r);
    void set_nz_in_place();
    void carry_from_host(const Step& s, FlagState::HostCarry sense);
    void carry_to_host(FlagState::HostCarry sense);

    // operands
    Operand operand(const Step& s);
    Mem ram_operand(const Step& s);
    Operand pointer_operand(const Step& s);
    void pay_for_crossing(Reg index, u8 low);
    void call(u32 place, int cycle);
    void leave_unless_below(Reg index, u8 bound, const Step& s);
    void register_address(const Step& s);
    void leave_if_limit_moved(const Step& s);

    // instructions
    void load(Reg to, const Step& s);
    void store(Reg from, const Step& s);
    void arithmetic(const Step& s);
    void compare(Reg reg, const Step& s);
    void bit(const Step& s);
    void modify(const Step& s);
    void modify_byte(const Step& s, Reg r);
    void count(const Step& s, Reg r, u8 times);
    void shift(const Step& s, u8 times);
    void transfer(Reg to, Reg from);
    void alu(Alu op, Reg to, const Operand& o);
    void jsr(const Step& s);
    void rts(const Step& s);
    void jmp_indirect(const Step& s);

    Label shared(u32 place);
    Target target_of(u16 pc);

    Assembler& a_;
    const Runtime& runtime_;
    const Prg& prg_;
    const std::vector<Trace>& traces_;
    const Blocks& known_;
    std::unordered_map<u16, Target> targets_;
    std::unordered_map<u32, Label> shared_;
    FlagState f_;
    std::vector<ColdExit> cold_;
    std::vector<SideEdge> side_;
};

}  // namespace wz::jit::x64
