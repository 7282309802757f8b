#pragma once
#include <span>
#include <unordered_map>

#include "nes/jit_backend.hpp"
#include "nes/jit_context.hpp"

namespace wz::jit {

/// The 6502's registers.
enum class Cpu : u8 { A, X, Y, S };

/// Turns traces into machine code, as far as that is the same for every machine: the order of things, the
/// ways out, and which trace is where. A backend derives from it and emits instructions. `Flags` is what it
/// knows at a point of a trace about where the 6502's flags are.
template <class Assembler, class Flags>
class Lowering {
  public:
    using Label = decltype(std::declval<Assembler>().label());

    Lowering(Assembler& a, const Runtime& runtime, const Prg& prg, const std::vector<Trace>& traces,
             const Blocks& known)
        : a_(a), runtime_(runtime), prg_(prg), traces_(traces), known_(known) {
        for (const Trace& t : traces_) targets_.emplace(t.entry, Target{a_.label(), t.cost, t.live});
    }
    virtual ~Lowering() = default;

    void run(std::vector<Block>& blocks) {
        blocks.resize(traces_.size());
        for (std::size_t i = 0; i < traces_.size(); ++i) trace(traces_[i], blocks[i]);
        cold_exits();
        a_.resolve();
    }

  protected:
    struct Target {
        Label label;
        u16 cost;
        u8 live;
    };

    // ---- what a backend does ----

    /// Goes to `otherwise` unless more than `cost` cycles remain.
    virtual void check_remaining(int cost, Label otherwise) = 0;
    /// Takes cycles off what remains.
    virtual void spend(int cycles) = 0;
    /// Puts those of the flags that are kept elsewhere into their registers.
    virtual void place_flags(u8 which) = 0;
    /// Passes over whole turns of a loop that polls the PPU status.
    virtual void skip_polls(u16 loop, int turn) = 0;
    /// Goes to `to`, or to `otherwise` unless more cycles remain than it costs.
    virtual void jump(const Target& to, Label otherwise) = 0;
    /// Hands control back.
    virtual void exit(u16 pc, Exit why) = 0;
    /// Jumps to `to` if the branch is taken; then `on_taken` is what is known there.
    virtual void branch(const Step& s, Label to, bool jump_if_taken, Flags& on_taken) = 0;

    virtual void load(Cpu to, const Step& s) = 0;
    virtual void store(Cpu from, const Step& s) = 0;
    virtual void arithmetic(const Step& s) = 0;
    virtual void compare(Cpu reg, const Step& s) = 0;
    virtual void bit(const Step& s) = 0;
    virtual void modify(const Step& s) = 0;
    virtual void transfer(Cpu to, Cpu from, bool sets_flags) = 0;
    /// INX and the like, several times.
    virtual void count(const Step& s, Cpu reg, u8 times) = 0;
    /// ASL A or LSR A, less than eight times.
    virtual void shift(const Step& s, u8 times) = 0;
    virtual void set_carry(bool value) = 0;
    virtual void clear_overflow() = 0;
    virtual void set_decimal(bool value) = 0;
    virtual void push_a() = 0;
    virtual void pull_a() = 0;
    virtual void jsr(const Step& s) = 0;
    virtual void rts(const Step& s) = 0;
    virtual void jmp_indirect(const Step& s) = 0;

    // ---- what it can use ----

    /// Leaves the trace when `cycles` have passed since its head.
    void leave(u16 pc, Exit why, int cycles) {
        place_flags(kAllFlags);
        if (cycles) spend(cycles);
        exit(pc, why);
    }

    /// A way out that is rarely taken: emitted later, out of the way, with what is known of the flags now.
    Label cold_exit(u16 pc, Exit why, int cycles) {
        const Label from = a_.label();
        cold_.push_back({from, f_, pc, why, cycles});
        return from;
    }
    Label shared(u32 place) {
        const auto [at, fresh] = shared_.try_emplace(place, Label{0});
        if (fresh) {
            at->second = a_.label();
            a_.bind(at->second, place);
        }
        return at->second;
    }
    /// Emits the cold exits so far; for machines whose conditional jumps don't reach far, after every trace.
    void cold_exits() {
        for (const ColdExit& e : cold_) {
            a_.bind(e.from);
            f_ = e.flags;
            leave(e.pc, e.why, e.cycles);
        }
        cold_.clear();
    }
    virtual void after_trace() {}

    Assembler& a_;
    const Runtime& runtime_;
    const Prg& prg_;
    Flags f_;

  private:
    struct ColdExit {
        Label from;
        Flags flags;
        u16 pc;
        Exit why;
        int cycles;
    };
    /// A jump to another trace, emitted behind this one.
    struct SideEdge {
        Label from;
        Flags flags;
        u16 target;
        int cycles, poll;
    };

    void trace(const Trace& t, Block& block) {
        a_.align(16);
        block.cost = t.cost;
        block.live = t.live;
        f_ = Flags{};
        block.checked = a_.here();
        check_remaining(t.cost, cold_exit(t.entry, Exit::NearLimit, 0));
        block.direct = a_.here();
        a_.bind(targets_.at(t.entry).label);
        for (std::size_t i = 0; i < t.steps.size();) i += steps(std::span(t.steps).subspan(i));
        const int cycles = t.steps.empty() ? 0 : t.steps.back().end;
        if (t.ending == Trace::Ending::Jump) edge(t.exit, cycles, 0);
        if (t.ending == Trace::Ending::Interpret) leave(t.exit, Exit::Interpret, cycles);
        if (t.ending == Trace::Ending::Wait) leave(t.exit, Exit::NearLimit, cycles);
        for (const SideEdge& e : side_) {
            a_.bind(e.from);
            f_ = e.flags;
            edge(e.target, e.cycles, e.poll);
        }
        side_.clear();
        after_trace();
    }

    Target target_of(u16 pc) {
        const auto at = targets_.find(pc);
        if (at != targets_.end()) return at->second;
        const Block& b = known_.at(pc);
        const Target t{a_.label(), b.cost, b.live};
        a_.bind(t.label, b.direct);
        targets_.emplace(pc, t);
        return t;
    }
    /// Goes on in another trace, after skipping turns of `poll` cycles each if that is not 0.
    void edge(u16 target, int cycles, int poll) {
        if (target < 0x8000) return leave(target, Exit::Unknown, cycles);
        const Target to = target_of(target);
        place_flags(to.live);
        if (cycles) spend(cycles);
        if (poll) skip_polls(target, poll);
        jump(to, cold_exit(target, Exit::NearLimit, 0));
    }

    /// Emits the first of `rest`, together with those behind it that merely repeat it. Returns how many.
    std::size_t steps(std::span<const Step> rest) {
        const Step& s = rest.front();
        std::size_t same = 1;
        while (same < rest.size() && same < 7 && rest[same].op == s.op && rest[same].mode == s.mode) ++same;
        const Step& last = rest[same - 1];
        switch (s.op) {
            case Op::Inx:
            case Op::Dex:
                count(last, Cpu::X, static_cast<u8>(same));
                return same;
            case Op::Iny:
            case Op::Dey:
                count(last, Cpu::Y, static_cast<u8>(same));
                return same;
            case Op::Asl:
            case Op::Lsr:
                if (s.mode != Mode::Accumulator) break;
                shift(last, static_cast<u8>(same));
                return same;
            default:
                break;
        }
        step(s);
        return 1;
    }

    void step(const Step& s) {
        switch (s.op) {
            case Op::Lda:
                return load(Cpu::A, s);
            case Op::Ldx:
                return load(Cpu::X, s);
            case Op::Ldy:
                return load(Cpu::Y, s);
            case Op::Sta:
                return store(Cpu::A, s);
            case Op::Stx:
                return store(Cpu::X, s);
            case Op::Sty:
                return store(Cpu::Y, s);
            case Op::Ora:
            case Op::And:
            case Op::Eor:
            case Op::Adc:
            case Op::Sbc:
                return arithmetic(s);
            case Op::Cmp:
                return compare(Cpu::A, s);
            case Op::Cpx:
                return compare(Cpu::X, s);
            case Op::Cpy:
                return compare(Cpu::Y, s);
            case Op::Bit:
                return bit(s);
            case Op::Asl:
            case Op::Lsr:
            case Op::Rol:
            case Op::Ror:
            case Op::Inc:
            case Op::Dec:
                return modify(s);
            case Op::Tax:
                return transfer(Cpu::X, Cpu::A, true);
            case Op::Txa:
                return transfer(Cpu::A, Cpu::X, true);
            case Op::Tay:
                return transfer(Cpu::Y, Cpu::A, true);
            case Op::Tya:
                return transfer(Cpu::A, Cpu::Y, true);
            case Op::Tsx:
                return transfer(Cpu::X, Cpu::S, true);
            case Op::Txs:
                return transfer(Cpu::S, Cpu::X, false);
            case Op::Clc:
                return set_carry(false);
            case Op::Sec:
                return set_carry(true);
            case Op::Clv:
                return clear_overflow();
            case Op::Cld:
                return set_decimal(false);
            case Op::Sed:
                return set_decimal(true);
            case Op::Pha:
                return push_a();
            case Op::Pla:
                return pull_a();
            case Op::Jsr:
                return jsr(s);
            case Op::Rts:
                return rts(s);
            case Op::JmpIndirect:
                return jmp_indirect(s);
            default:
                if (is_branch(s.op) && !s.inlined) take_or_pass(s);
        }
    }

    void take_or_pass(const Step& s) {
        const int cycles = s.start + s.taken_cycles(), poll = poll_length(prg_, s);
        const Label out = a_.label();
        const bool loops = s.target <= s.pc;  // then expect it to be taken
        Flags on_taken;
        branch(s, out, !loops, on_taken);
        if (loops) {
            const Flags passed = f_;
            f_ = on_taken;
            edge(s.target, cycles, poll);
            a_.bind(out);
            f_ = passed;
        } else {
            side_.push_back({out, on_taken, s.target, cycles, poll});
        }
    }

    const std::vector<Trace>& traces_;
    const Blocks& known_;
    std::unordered_map<u16, Target> targets_;
    std::unordered_map<u32, Label> shared_;
    std::vector<ColdExit> cold_;
    std::vector<SideEdge> side_;
};

}  // namespace wz::jit
