#pragma once
#include <memory>

#include "nes/bus.hpp"

namespace wz::jit {

/// A cartridge's program as native code, one for all machines that play it. It grows as they reach new code;
/// any number of threads, and children they fork, may run it at once.
class Translation;

/// Translates what can be seen from the vectors. Null where the processor is not supported or the system
/// gives no memory to execute; then the interpreter does everything.
std::shared_ptr<Translation> translate(const Cartridge& cart);

/// Does what cpu::execute<true>(k) does, to the cycle. `k.cart` must be the cartridge translated.
void execute(Translation& t, Console& k);

}  // namespace wz::jit
