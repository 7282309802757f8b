#include "nes/jit_x64_lower.hpp"

#if defined(__x86_64__)

namespace wz::jit::x64 {

using HostCarry = FlagState::HostCarry;
using Nz = FlagState::Nz;

Lowering::Lowering(Assembler& a, const Runtime& runtime, const Prg& prg, const std::vector<Trace>& traces,
                   const Blocks& known)
    : a_(a), runtime_(runtime), prg_(prg), traces_(traces), known_(known) {
    for (const Trace& t : traces_) targets_.emplace(t.entry, Target{a_.label(), t.cost, t.live});
}

void Lowering::run(std::vector<Block>& blocks) {
    blocks.resize(traces_.size());
    for (std::size_t i = 0; i < traces_.size(); ++i) trace(traces_[i], blocks[i]);
    cold_exits();
    a_.resolve();
}

Label Lowering::shared(u32 place) {
    const auto [at, fresh] = shared_.try_emplace(place, Label{0});
    if (fresh) {
        at->second = a_.label();
        a_.bind(at->second, place);
    }
    return at->second;
}

Lowering::Target Lowering::target_of(u16 pc) {
    const auto at = targets_.find(pc);
    if (at != targets_.end()) return at->second;
    const Block& b = known_.at(pc);
    const Target t{a_.label(), b.cost, b.live};
    a_.bind(t.label, b.direct);
    targets_.emplace(pc, t);
    return t;
}

void Lowering::trace(const Trace& t, Block& block) {
    a_.align(16);
    block.cost = t.cost;
    block.live = t.live;
    f_ = FlagState{};
    block.checked = a_.here();
    a_.alu64(kCmp, kRemaining, t.cost);
    a_.jcc(kLE, cold_exit(t.entry, Exit::NearLimit, 0));
    block.direct = a_.here();
    a_.bind(targets_.at(t.entry).label);
    for (std::size_t i = 0; i < t.steps.size();) i += steps(std::span(t.steps).subspan(i));
    finish(t);
    side_edges();
}

void Lowering::finish(const Trace& t) {
    const int cycles = t.steps.empty() ? 0 : t.steps.back().end;
    switch (t.ending) {
        case Trace::Ending::Jump:
            edge(t.exit, cycles, 0);
            break;
        case Trace::Ending::Interpret:
            leave(t.exit, Exit::Interpret, cycles);
            break;
        case Trace::Ending::Wait:
            leave(t.exit, Exit::NearLimit, cycles);
            break;
        case Trace::Ending::Dynamic:
            break;
    }
}

void Lowering::side_edges() {
    for (const SideEdge& e : side_) {
        a_.bind(e.from);
        f_ = e.flags;
        edge(e.target, e.cycles, e.poll);
    }
    side_.clear();
}

void Lowering::cold_exits() {
    for (const ColdExit& e : cold_) {
        a_.bind(e.from);
        f_ = e.flags;
        leave(e.pc, e.exit, e.cycles);
    }
    cold_.clear();
}

// ---- exits ----

void Lowering::leave(u16 pc, Exit exit, int cycles) {
    place_nz();
    place_carry();
    if (cycles) a_.alu64(kSub, kRemaining, cycles);
    a_.mov32(kT0, pc);
    a_.mov32(kT1, static_cast<u32>(exit));
    a_.jmp(shared(runtime_.exit));
}

Label Lowering::cold_exit(u16 pc, Exit exit, int cycles) {
    const Label from = a_.label();
    cold_.push_back({from, f_, pc, exit, cycles});
    return from;
}

void Lowering::edge(u16 target, int cycles, int poll) {
    if (target < 0x8000) return leave(target, Exit::Unknown, cycles);
    const Target to = target_of(target);
    if (to.live & kNZ) place_nz();
    if (to.live & kC) place_carry();
    if (cycles) a_.alu64(kSub, kRemaining, cycles);
    if (poll) {
        a_.mov32(kT0, static_cast<u32>(poll));
        call(runtime_.skip_polls, 0);
        a_.alu64(kSub, kRemaining, kT0);
    }
    f_.clobber_host();
    a_.alu64(kCmp, kRemaining, to.cost);
    a_.jcc(kG, to.label);
    a_.jmp(cold_exit(target, Exit::NearLimit, 0));
}

/// kT0 is the address to go to, in PRG ROM, less $8000.
void Lowering::jump_to_entry(int cycles) {
    place_nz();
    place_carry();
    a_.alu64(kSub, kRemaining, cycles);
    a_.jmp(Mem{kEntries, 0, kT0, 3});
}

// ---- flags ----

void Lowering::place_nz() {
    if (f_.nz == Nz::InPlace) return;
    a_.mov32(kRegNz, f_.nz_reg);
    if (f_.nz == Nz::Compare) {
        a_.alu8(kSub, kRegNz, f_.nz_imm);
        f_.clobber_host();
    }
    f_.nz = Nz::InPlace;
    f_.nz_plain = true;
}

void Lowering::place_carry() {
    if (f_.carry_in_place) return;
    a_.mov32(kCarry, static_cast<u32>(f_.carry_value));
    f_.carry_in_place = true;
}

void Lowering::set_nz(Reg r) {
    f_.nz = Nz::Value;
    f_.nz_reg = r;
}
void Lowering::set_nz_in_place() {
    f_.nz = Nz::InPlace;
    f_.nz_plain = true;
}

/// The step's carry is in the host's, or the opposite of it.
void Lowering::carry_from_host(const Step& s, HostCarry sense) {
    f_.host_carry = sense;
    f_.carry_value = -1;
    f_.carry_in_place = true;
    if (s.needed & kC) a_.setcc(sense == HostCarry::Same ? kB : kAE, kCarry);
}

void Lowering::carry_to_host(HostCarry sense) {
    if (f_.host_carry == sense) return;
    if (f_.host_carry != HostCarry::None) {
        a_.cmc();
    } else if (f_.carry_value >= 0) {
        if ((f_.carry_value == 1) == (sense == HostCarry::Same))
            a_.stc();
        else
            a_.clc();
    } else if (sense == HostCarry::Same) {
        a_.bt32(kCarry, 0);
    } else {
        a_.alu8(kCmp, kCarry, u8{1});
    }
}

// ---- operands ----

/// Gives back the cycle that was counted for leaving the page where the index stays within it.
void Lowering::pay_for_crossing(Reg index, u8 low) {
    a_.alu8(kCmp, index, static_cast<u8>(0x100 - low));
    a_.alu64(kAdc, kRemaining, 0);
    f_.clobber_host();
}

Mem Lowering::ram_operand(const Step& s) {
    if (s.mode == Mode::Zp || s.mode == Mode::Abs) return ram(s.operand);
    const Reg index = s.mode == Mode::ZpX || s.mode == Mode::AbsX ? kRegX : kRegY;
    if (s.mode == Mode::ZpX || s.mode == Mode::ZpY) {
        a_.lea32(kT0, Mem{index, s.operand});
        a_.movzx8(kT0, kT0);
        return ram(kT0);
    }
    if (s.pays_for_crossing()) pay_for_crossing(index, static_cast<u8>(s.operand));
    if ((s.operand & 0x7FF) <= 0x700) return ram(index, s.operand & 0x7FF);
    a_.lea32(kT0, Mem{index, s.operand & 0x7FF});
    a_.alu32(kAnd, kT0, 0x7FF);
    f_.clobber_host();
    return ram(kT0);
}

Operand Lowering::pointer_operand(const Step& s) {
    const Label rom = a_.label(), join = a_.label();
    const Label slow = cold_exit(s.pc, Exit::Interpret, s.start);
    a_.movzx8(kT0, ram(s.operand));
    a_.movzx8(kT1, ram(static_cast<u8>(s.operand + 1)));
    a_.alu32(kAdd, kT0, kRegY);
    if (s.pays_for_crossing()) a_.mov32(kT2, kT0);
    a_.shl32(kT1, 8);
    a_.alu32(kAdd, kT0, kT1);
    a_.alu32(kCmp, kT0, 0x2000);
    f_.clobber_host();
    Operand o;
    if (is_store(s.op)) {
        a_.jcc(kAE, slow);
        a_.alu32(kAnd, kT0, 0x7FF);
        o.kind = Operand::Kind::Memory;
        o.mem = ram(kT0);
        return o;
    }
    a_.jcc(kAE, rom);
    a_.alu32(kAnd, kT0, 0x7FF);
    a_.movzx8(kT0, ram(kT0));
    a_.jmp(join);
    a_.bind(rom);
    a_.alu32(kSub, kT0, 0x8000);
    a_.alu32(kCmp, kT0, 0x8000);
    a_.jcc(kAE, slow);
    a_.movzx8(kT0, Mem{kPrg, 0, kT0});
    a_.bind(join);
    a_.alu32(kCmp, kT2, 0x100);
    a_.alu64(kAdc, kRemaining, 0);
    o.kind = Operand::Kind::Register;
    o.reg = kT0;
    return o;
}

void Lowering::call(u32 place, int cycle) {
    a_.mov32(kT2, static_cast<u32>(cycle));
    a_.call(shared(place));
    f_.clobber_host();
}

/// The operand of an instruction that reads. Register accesses happen here.
Operand Lowering::operand(const Step& s) {
    Operand o;
    switch (s.access) {
        case Access::Ram:
            o.kind = Operand::Kind::Memory;
            o.mem = ram_operand(s);
            return o;
        case Access::Rom:
            if (s.mode == Mode::Abs) {
                o.imm = prg_[s.operand & 0x7FFF];
                return o;
            }
            o.kind = Operand::Kind::Memory;
            {
                const Reg index = s.mode == Mode::AbsX ? kRegX : kRegY;
                if (s.may_wrap()) leave_unless_below(index, static_cast<u8>(0x100 - (s.operand & 0xFF)), s);
                if (s.pays_for_crossing()) pay_for_crossing(index, static_cast<u8>(s.operand));
                o.mem = {kPrg, s.operand - 0x8000, index};
            }
            return o;
        case Access::Register:
            a_.mov32(kT0, s.operand);
            call(runtime_.read, s.start + 3);
            break;
        case Access::RegisterIndexed:
            register_address(s);
            call(runtime_.read, s.start + 3);
            break;
        case Access::Pointer:
            return pointer_operand(s);
        case Access::None:
            o.imm = static_cast<u8>(s.operand);
            return o;
    }
    o.kind = Operand::Kind::Register;
    o.reg = kT0;
    return o;
}

/// The interpreter does the step if the index is `bound` or more.
void Lowering::leave_unless_below(Reg index, u8 bound, const Step& s) {
    a_.alu8(kCmp, index, bound);
    f_.clobber_host();
    a_.jcc(kAE, cold_exit(s.pc, Exit::Interpret, s.start));
}

/// kT0 becomes the address of an indexed register access that stays within its page.
void Lowering::register_address(const Step& s) {
    const Reg index = s.mode == Mode::AbsX ? kRegX : kRegY;
    if (s.operand & 0xFF) leave_unless_below(index, static_cast<u8>(0x100 - (s.operand & 0xFF)), s);
    a_.lea32(kT0, Mem{index, s.operand});
}

void Lowering::leave_if_limit_moved(const Step& s) {
    if (s.access != Access::Register && s.access != Access::RegisterIndexed) return;
    a_.mov64(kT1, context(offsetof(Context, limit)));
    a_.alu64(kCmp, kT1, machine(offsetof(Machine, limit)));
    f_.clobber_host();
    a_.jcc(kNE, cold_exit(s.next(), Exit::LimitMoved, s.end));
}

}  // namespace wz::jit::x64

namespace wz::jit {

std::vector<u8> emit_traces(u32 origin, const Runtime& runtime, const Prg& prg,
                            const std::vector<Trace>& traces, const Blocks& known,
                            std::vector<Block>& blocks) {
    x64::Assembler a(origin);
    x64::Lowering(a, runtime, prg, traces, known).run(blocks);
    return a.code();
}

}  // namespace wz::jit
#endif
