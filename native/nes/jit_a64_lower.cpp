#include "nes/jit_a64_lower.hpp"

#if defined(__aarch64__)

namespace wz::jit::a64 {

using Nz = FlagState::Nz;

// ---- exits ----

void A64Lowering::check_remaining(int cost, Label otherwise) {
    a_.cmp64(kRemaining, static_cast<u32>(cost));
    a_.b(kLe, otherwise);
}

void A64Lowering::spend(int cycles) { a_.sub64(kRemaining, kRemaining, static_cast<u32>(cycles)); }

void A64Lowering::skip_polls(u16 loop, int turn) {
    a_.mov(kT0, u32{loop} << 16 | static_cast<u32>(turn));
    a_.mov(kT1, kRegA);
    call(runtime_.skip_polls, 0);
    a_.sub64(kRemaining, kRemaining, kT0);
}

void A64Lowering::jump(const Target& to, Label otherwise) {
    check_remaining(to.cost, otherwise);
    a_.b(to.label);
}

void A64Lowering::exit(u16 pc, Exit why) {
    a_.mov(kT0, pc);
    a_.mov(kT1, static_cast<u32>(why));
    a_.b(shared(runtime_.exit));
}

/// kT0 is the address to go to, in PRG ROM, less $8000.
void A64Lowering::jump_to_entry(int cycles) {
    place_flags(kAllFlags);
    spend(cycles);
    a_.ldr64_at(kTemp, kEntries, kT0);
    a_.br(kTemp);
}

// ---- flags ----

void A64Lowering::place_flags(u8 which) {
    if ((which & kNZ) && f_.nz != Nz::InPlace) {
        if (f_.nz == Nz::Compare) {
            a_.sub(kRegNz, f_.nz_reg, u32{f_.nz_imm});
            a_.byte(kRegNz, kRegNz);
        } else {
            a_.mov(kRegNz, f_.nz_reg);
        }
        set_nz_in_place();
    }
    if ((which & kC) && !f_.carry_in_place) {
        a_.mov(kCarry, static_cast<u32>(f_.carry_value));
        f_.carry_in_place = true;
    }
}

void A64Lowering::set_nz(Reg r) {
    f_.nz = Nz::Value;
    f_.nz_reg = r;
    f_.host_compared = false;
}
void A64Lowering::set_nz_in_place() {
    f_.nz = Nz::InPlace;
    f_.nz_plain = true;
}
void A64Lowering::set_carry_in_place() {
    f_.carry_in_place = true;
    f_.carry_value = -1;
}

// ---- operands ----

/// Gives back the cycle that was counted for leaving the page where the index stays within it.
void A64Lowering::pay_for_crossing(Reg index, u8 low) {
    a_.cmp(index, 0x100u - low);
    a_.cinc64(kRemaining, kLo);
    f_.host_compared = false;
}

/// The interpreter does the step if the index is `bound` or more.
void A64Lowering::leave_unless_below(Reg index, u32 bound, const Step& s) {
    a_.cmp(index, bound);
    f_.host_compared = false;
    a_.b(kHs, cold_exit(s.pc, Exit::Interpret, s.start));
}

Place A64Lowering::ram_operand(const Step& s) {
    const u32 base = s.operand & 0x7FF;
    if (s.mode == Mode::Zp || s.mode == Mode::Abs) return {kRam, base, zr};
    const Reg index = s.mode == Mode::ZpX || s.mode == Mode::AbsX ? kRegX : kRegY;
    if (s.mode == Mode::ZpX || s.mode == Mode::ZpY) {
        a_.add(kAddress, index, base);
        a_.byte(kAddress, kAddress);
        return {kRam, 0, kAddress};
    }
    if (s.pays_for_crossing()) pay_for_crossing(index, static_cast<u8>(s.operand));
    if (base <= 0x700) {
        a_.add64(kAddress, kRam, base);
        return {kAddress, 0, index};
    }
    a_.add(kAddress, index, base);
    a_.bits(kAddress, kAddress, 0, 11);
    return {kRam, 0, kAddress};
}

Place A64Lowering::rom_operand(const Step& s) {
    const Reg index = s.mode == Mode::AbsX ? kRegX : kRegY;
    const u32 low = s.operand & 0xFF, offset = s.operand & 0x7FFF;
    if (s.may_wrap()) leave_unless_below(index, 0x100 - low, s);
    if (s.pays_for_crossing()) pay_for_crossing(index, static_cast<u8>(low));
    Reg base = kPrg;
    for (u32 part : {offset & 0x7000, offset & 0xFFF}) {
        if (!part) continue;
        a_.add64(kAddress, base, part);
        base = kAddress;
    }
    return {base, 0, index};
}

/// For reads the byte is fetched into kValue here, since it may come from RAM or ROM.
Place A64Lowering::pointer_operand(const Step& s) {
    const Label slow = cold_exit(s.pc, Exit::Interpret, s.start);
    a_.ldrb(kT0, kRam, u32{s.operand});
    a_.ldrb(kT1, kRam, (s.operand + 1u) & 0xFF);
    a_.add(kT0, kT0, kRegY);
    a_.add(kAddress, kT0, kT1, 8);
    a_.shr(kTemp, kAddress, 13);
    if (is_store(s.op)) {
        a_.cbnz(kTemp, slow);
        a_.bits(kAddress, kAddress, 0, 11);
        return {kRam, 0, kAddress};
    }
    const Label rom = a_.label(), join = a_.label();
    a_.cbnz(kTemp, rom);
    a_.bits(kAddress, kAddress, 0, 11);
    a_.ldrb(kValue, kRam, kAddress);
    a_.b(join);
    a_.bind(rom);
    a_.sub(kAddress, kAddress, 0x8000u);
    a_.shr(kTemp, kAddress, 15);
    a_.cbnz(kTemp, slow);
    a_.ldrb(kValue, kPrg, kAddress);
    a_.bind(join);
    a_.cmp(kT0, 0x100);
    a_.cinc64(kRemaining, kLo);
    f_.host_compared = false;
    return {};
}

void A64Lowering::read(Reg to, const Place& p) {
    if (p.index == zr)
        a_.ldrb(to, p.base, p.offset);
    else
        a_.ldrb(to, p.base, p.index);
}

void A64Lowering::write(Reg from, const Place& p) {
    if (p.index == zr)
        a_.strb(from, p.base, p.offset);
    else
        a_.strb(from, p.base, p.index);
}

void A64Lowering::call(u32 place, int cycle) {
    a_.mov(kT2, static_cast<u32>(cycle));
    a_.bl(shared(place));
    f_.host_compared = false;
}

/// The operand of an instruction that reads, in a register that may be scratch. Register accesses happen
/// here.
Reg A64Lowering::operand(const Step& s) {
    switch (s.access) {
        case Access::None:
            a_.mov(kValue, s.operand);
            return kValue;
        case Access::Ram:
            read(kValue, ram_operand(s));
            return kValue;
        case Access::Rom:
            if (s.mode == Mode::Abs)
                a_.mov(kValue, prg_[s.operand & 0x7FFF]);
            else
                read(kValue, rom_operand(s));
            return kValue;
        case Access::Pointer:
            pointer_operand(s);
            return kValue;
        case Access::Register:
            a_.mov(kT0, s.operand);
            break;
        case Access::RegisterIndexed:
            register_address(s);
            break;
    }
    call(runtime_.read, s.start + 3);
    return kT0;
}

/// kT0 becomes the address of an indexed register access that stays within its page.
void A64Lowering::register_address(const Step& s) {
    const Reg index = s.mode == Mode::AbsX ? kRegX : kRegY;
    if (s.operand & 0xFF) leave_unless_below(index, 0x100u - (s.operand & 0xFF), s);
    a_.mov(kT0, s.operand);
    a_.add(kT0, kT0, index);
}

void A64Lowering::leave_if_limit_moved(const Step& s) {
    if (s.access != Access::Register && s.access != Access::RegisterIndexed) return;
    a_.ldr64(kTemp, kContext, offsetof(Context, machine));
    a_.ldr64(kTemp, kTemp, offsetof(Machine, limit));
    a_.ldr64(kValue, kContext, offsetof(Context, limit));
    a_.cmp64(kTemp, kValue);
    f_.host_compared = false;
    a_.b(kNe, cold_exit(s.next(), Exit::LimitMoved, s.end));
}

}  // namespace wz::jit::a64

namespace wz::jit {

std::vector<u8> emit_traces(u32 origin, const Runtime& runtime, const Prg& prg,
                            const std::vector<Trace>& traces, const Blocks& known,
                            std::vector<Block>& blocks) {
    a64::Assembler a(origin);
    a64::A64Lowering(a, runtime, prg, traces, known).run(blocks);
    return a.code();
}

}  // namespace wz::jit
#endif
