#include "nes/jit_trace.hpp"

#include <algorithm>

#include "nes/idle.hpp"

namespace wz::jit {
namespace {

constexpr u16 kSpriteDma = 0x4014;

u8 at(const Prg& prg, u32 addr) { return prg[addr & 0x7FFF]; }
u16 word_at(const Prg& prg, u32 addr) { return static_cast<u16>(at(prg, addr) | at(prg, addr + 1) << 8); }

/// Where the operand leads, or nothing when the case is too rare to translate.
bool classify(Step& s) {
    const bool writes = is_store(s.op) || (is_modify(s.op) && s.mode != Mode::Accumulator);
    switch (s.mode) {
        case Mode::Zp:
        case Mode::ZpX:
        case Mode::ZpY:
            s.access = Access::Ram;
            return true;
        case Mode::IndY:
            s.access = Access::Pointer;
            return true;
        case Mode::Abs:
        case Mode::AbsX:
        case Mode::AbsY: {
            const u32 first = s.operand, last = first + (s.mode == Mode::Abs ? 0 : 0xFF);
            if (last < 0x2000)
                s.access = Access::Ram;
            else if (first >= 0x8000 && !writes)
                s.access = Access::Rom;
            else if (first >= 0x2000 && last < 0x8000 && !is_modify(s.op))
                s.access = s.mode == Mode::Abs ? Access::Register : Access::RegisterIndexed;
            else
                return false;
            return true;
        }
        default:
            return true;
    }
}

/// After sprite DMA the CPU stands still for longer than a trace's cost covers, so the trace ends there.
bool may_stall(const Step& s) {
    if (!is_store(s.op) || (s.access != Access::Register && s.access != Access::RegisterIndexed))
        return false;
    return s.operand <= kSpriteDma && s.operand + (s.mode == Mode::Abs ? 0 : 0xFF) >= kSpriteDma;
}

/// A branch after an instruction that settles it, as in SEC / BCS, is a jump in disguise.
bool always_taken(const Step& before, const Step& branch) {
    switch (branch.op) {
        case Op::Bcc:
            return before.op == Op::Clc;
        case Op::Bcs:
            return before.op == Op::Sec;
        case Op::Bvc:
            return before.op == Op::Clv;
        default:
            break;
    }
    if (before.mode != Mode::Immediate || before.op < Op::Lda || before.op > Op::Ldy) return false;
    const u8 value = static_cast<u8>(before.operand);
    switch (branch.op) {
        case Op::Bne:
            return value != 0;
        case Op::Beq:
            return value == 0;
        case Op::Bmi:
            return value >= 0x80;
        case Op::Bpl:
            return value < 0x80;
        default:
            return false;
    }
}

/// Return addresses that calls in the trace have pushed, by how deep in the stack they lie.
class ReturnAddresses {
  public:
    void call(u16 back) {
        depth_ += 2;
        calls_.push_back({depth_, back});
    }
    void push() { ++depth_; }
    void pull() {
        if (!calls_.empty() && calls_.back().depth == depth_) calls_.pop_back();
        --depth_;
    }
    void forget() { calls_.clear(); }
    /// The top of the stack is a call's: removes it and says where it goes back to.
    bool take(u16& back) {
        if (calls_.empty() || calls_.back().depth != depth_) return false;
        back = calls_.back().back;
        calls_.pop_back();
        depth_ -= 2;
        return true;
    }

  private:
    struct Call {
        int depth;
        u16 back;
    };
    std::vector<Call> calls_;
    int depth_ = 0;
};

/// May somebody see the flags at the start (the first) or at the end (the second) of the step, other than by
/// using them?
bool leaves_before(const Step& s) {
    return s.access == Access::Pointer || s.access == Access::RegisterIndexed || s.may_wrap() ||
           s.op == Op::Jsr || s.op == Op::Rts || s.op == Op::JmpIndirect;
}
bool leaves_after(const Step& s) {
    return s.access == Access::Register || s.access == Access::RegisterIndexed ||
           (is_branch(s.op) && !s.inlined);
}

void find_needed_flags(Trace& t) {
    u8 needed = kAllFlags;
    for (auto s = t.steps.rbegin(); s != t.steps.rend(); ++s) {
        if (leaves_after(*s)) needed = kAllFlags;
        s->needed = needed;
        needed = static_cast<u8>((needed & ~flags_set(s->op)) |
                                 (s->inlined && is_branch(s->op) ? 0 : flags_used(s->op)));
        if (leaves_before(*s)) needed = kAllFlags;
    }
    t.live = needed;
}

}  // namespace

bool Step::pays_for_crossing() const {
    if (is_store(op) || (is_modify(op) && !rules.modify_crossing)) return false;
    if (access == Access::Pointer) return true;
    const bool indexed = mode == Mode::AbsX || mode == Mode::AbsY;
    return indexed && access != Access::RegisterIndexed && (operand & 0xFF) != 0;
}

int poll_length(const Prg& prg, const Step& branch) {
    const u8 offset = static_cast<u8>(branch.target - branch.next());
    if (!idle::loop_is_in_rom(branch.target) || branch.target > branch.pc) return 0;
    if (offset != 0xFB && offset != 0xF9) return 0;
    if (!idle::polls_status(prg.data() + (branch.target & 0x7FFF), offset)) return 0;
    return (offset == 0xF9 ? 9 : 7) + branch.taken_cycles() - 3;
}

Trace follow(const Prg& prg, u16 entry, int longest, Rules rules) {
    Trace t;
    t.entry = entry;
    t.steps.reserve(static_cast<std::size_t>(longest));
    ReturnAddresses returns;
    u32 pc = entry;
    u16 now = 0;
    auto finish = [&](Trace::Ending how, u32 where) {
        t.ending = how;
        t.exit = static_cast<u16>(where);
        t.cost = std::max(t.cost, now);
        find_needed_flags(t);
        return t;
    };
    for (;;) {
        const bool again =
            std::any_of(t.steps.begin(), t.steps.end(), [&](const Step& s) { return s.pc == pc; });
        if (again || static_cast<int>(t.steps.size()) >= longest) return finish(Trace::Ending::Jump, pc);
        if (pc < 0x8000 || pc > 0xFFFF) return finish(Trace::Ending::Interpret, pc);
        const Opcode code = kOpcodes[at(prg, pc)];
        Step s;
        s.rules = rules;
        s.pc = static_cast<u16>(pc);
        s.op = code.op;
        s.mode = code.mode;
        const int size = length(s.mode);
        // An instruction that runs over the end of memory is as good as rare.
        if (s.op == Op::Rare || pc + static_cast<u32>(size) > 0x10000)
            return finish(Trace::Ending::Interpret, pc);
        s.operand = size == 3 ? word_at(prg, pc + 1) : size == 2 ? at(prg, pc + 1) : u16{0};
        // From a jump's operand nothing is read.
        const bool jumps = s.op == Op::Jmp || s.op == Op::JmpIndirect || s.op == Op::Jsr;
        if (!jumps && !classify(s)) return finish(Trace::Ending::Interpret, pc);
        s.start = now;
        s.end = static_cast<u16>(now + code.cycles + s.pays_for_crossing());
        u32 next = pc + static_cast<u32>(size);
        bool dynamic = false;

        switch (s.op) {
            case Op::Jmp:
                if (s.operand == pc) return finish(Trace::Ending::Wait, pc);
                s.target = s.operand;
                next = s.target;
                break;
            case Op::JmpIndirect:
                if (s.operand >= 0x2000 && s.operand < 0x8000) return finish(Trace::Ending::Interpret, pc);
                dynamic = s.operand < 0x2000;
                if (!dynamic) {
                    // The pointer's high byte comes from the same page.
                    const u32 high = (s.operand & 0xFF00u) | ((s.operand + 1u) & 0xFF);
                    s.target = static_cast<u16>(at(prg, s.operand) | at(prg, high) << 8);
                    s.op = Op::Jmp;
                    next = s.target;
                }
                break;
            case Op::Jsr:
                returns.call(static_cast<u16>(next));
                s.target = s.operand;
                next = s.target;
                break;
            case Op::Rts:
                s.inlined = returns.take(s.target);
                dynamic = !s.inlined;
                next = s.target;
                break;
            case Op::Pha:
                returns.push();
                break;
            case Op::Pla:
                returns.pull();
                break;
            case Op::Txs:
                returns.forget();
                break;
            default:
                if (is_branch(s.op)) {
                    s.target = static_cast<u16>(next + static_cast<u32>(static_cast<i8>(s.operand)));
                    const u16 taken = static_cast<u16>(now + s.taken_cycles());
                    if (!t.steps.empty() && always_taken(t.steps.back(), s)) {
                        s.inlined = true;
                        s.end = taken;
                        next = s.target;
                    } else {
                        t.cost = std::max(t.cost, taken);
                    }
                }
        }
        t.steps.push_back(s);
        now = s.end;
        pc = next;
        if (dynamic) return finish(Trace::Ending::Dynamic, 0);
        if (may_stall(s)) return finish(Trace::Ending::Jump, pc);
    }
}

}  // namespace wz::jit
