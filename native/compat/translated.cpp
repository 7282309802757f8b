#include "compat/console.hpp"
#include "nes/cpu.hpp"
#include "nes/idle.hpp"
#include "nes/jit.hpp"
#include "nes/jit_context.hpp"

namespace wz::compat::cpu {
namespace {

/// Translated code gives the cycle in which the hardware makes an access, the fourth of the instruction. Here
/// everything happens in the first.
constexpr i64 kLate = 3;

struct Context : jit::Context {
    Console* k;
};
Console& console(jit::Context* c) { return *static_cast<Context*>(c)->k; }

u32 read(jit::Context* c, u32 addr, u32, i64 cycle) {
    return read_register(console(c), static_cast<u16>(addr), cycle - kLate);
}
u32 write(jit::Context* c, u32 addr, u32 value, i64 cycle) {
    return static_cast<u32>(
        write_register(console(c), static_cast<u16>(addr), static_cast<u8>(value), cycle - kLate));
}
/// `loop`: its address, and below that the cycles of a turn. Every turn passed over leaves A as it is now.
u32 skip_polls(jit::Context* c, u32 loop, u32 a, i64 clock) {
    Console& k = console(c);
    const u8* const code = c->prg + (loop >> 16 & 0x7FFF);
    const u8 status = k.state.status, read = code[3] == 0x29 ? status & code[4] : status;
    const bool loads = code[0] != 0x2C;
    if ((loads && a != read) || !idle::turns_again(code, status, static_cast<u8>(a))) return 0;
    return static_cast<u32>(compat::skip_polls(k, clock, loop & 0xFFFF, c->limit));
}

enum : u8 { kNegative = 1, kOverflow = 2, kRest = 0x3C, kDecimal = 0x10, kZero = 0x40, kCarry = 0x80 };

void load_state(Context& c, State& m, i64 limit) {
    c.remaining = limit - m.clock;
    c.a = m.a, c.x = m.x, c.y = m.y, c.s = m.s;
    c.nz = (m.p & kNegative ? 0x8000u : 0u) | (m.p & kZero ? 0u : 1u);
    c.carry = m.p >> 7;
    c.overflow = m.p >> 1 & 1;
    m.shell.p = m.p & kDecimal ? wz::cpu::kDecimal : 0;
}

void store_state(const Context& c, State& m, i64 limit) {
    m.clock = limit - c.remaining;
    m.pc = static_cast<u16>(c.pc);
    m.a = static_cast<u8>(c.a), m.x = static_cast<u8>(c.x), m.y = static_cast<u8>(c.y),
    m.s = static_cast<u8>(c.s);
    m.p = static_cast<u8>((m.p & kRest & ~kDecimal) | (m.shell.p & wz::cpu::kDecimal ? kDecimal : 0) |
                          (c.nz & 0x8080 ? kNegative : 0) | (c.nz & 0xFF ? 0 : kZero) |
                          (c.overflow ? kOverflow : 0) | (c.carry ? kCarry : 0));
}

}  // namespace

void execute_translated(Console& k, i64 limit) {
    State& m = k.state;
    jit::Translation& t = *k.game->translation;
    Context c;
    c.k = &k;
    c.limit = m.shell.limit = limit;
    c.ram = m.shell.ram + jit::kRamBias;
    c.prg = k.cartridge->prg.data();
    c.entries = jit::entries(t);
    c.machine = &m.shell;
    c.console = nullptr;
    c.read = read, c.write = c.write_indexed = write, c.skip_polls = skip_polls;
    while (m.pc >= 0x8000 && m.clock < limit) {
        const void* at = jit::entry(t, *k.cartridge, m.pc);
        if (!at) break;
        load_state(c, m, limit);
        jit::enter(t, c, at);
        store_state(c, m, limit);
        if (c.exit == jit::Exit::NearLimit) break;
        if (c.exit == jit::Exit::Interpret && m.clock < limit) execute<true>(k, m.clock + 1);
    }
    if (m.clock < limit) execute<true>(k, limit);
}

}  // namespace wz::compat::cpu
