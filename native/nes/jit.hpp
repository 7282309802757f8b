#pragma once
#include <memory>

#include "nes/bus.hpp"
#include "nes/jit_trace.hpp"

namespace wz::jit {

/// A cartridge's program as native code, one for all machines that play it. It grows as they reach new code;
/// any number of threads, and children they fork, may run it at once.
class Translation;

/// Translates what can be seen from the vectors. Null where the processor is not supported or the system
/// gives no memory to execute; then the interpreter does everything.
std::shared_ptr<Translation> translate(const Cartridge& cart, Rules rules = {});

/// Does what cpu::execute<true>(k) does, to the cycle. `k.cart` must be the cartridge translated.
void execute(Translation& t, Console& k);

// ---- for consoles with rules of their own ----
struct Context;
/// The code for `pc`, which is in PRG ROM; null when there is none.
const void* entry(Translation& t, const Cartridge& cart, u16 pc);
/// Code addresses by pc - $8000.
const void* entries(const Translation& t);
/// Runs code from `entry` until it hands control back.
void enter(const Translation& t, Context& c, const void* code);

}  // namespace wz::jit
