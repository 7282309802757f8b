#pragma once
#include <vector>

#include "nes/jit_trace.hpp"

/// There is a backend for the machine this is compiled for.
#if (defined(__x86_64__) || defined(__aarch64__)) && (defined(__linux__) || defined(__APPLE__))
#define WZ_JIT 1
#else
#define WZ_JIT 0
#endif

namespace wz::jit {

/// A trace in code memory. Places are counted in bytes from its start.
struct Block {
    u32 checked = 0;  ///< looks at the remaining cycles first; wants every flag in its place
    u32 direct = 0;   ///< for jumps that have done both as far as this block needs
    u16 cost = 0;     ///< must be less than the remaining cycles
    u8 live = 0;      ///< flags that must be in place
};

/// Blocks by the address of their first instruction.
class Blocks {
  public:
    Blocks() : blocks_(0x8000) {}
    const Block& at(u16 pc) const { return blocks_[pc & 0x7FFF]; }
    Block& at(u16 pc) { return blocks_[pc & 0x7FFF]; }

  private:
    std::vector<Block> blocks_;
};

/// Places of the code that all traces share.
struct Runtime {
    u32 enter = 0;    ///< void (Context*, const void* code)
    u32 unknown = 0;  ///< what the table of entries holds where there is no block
    u32 exit = 0;     ///< stores the state; expects the pc and the Exit in registers
    u32 read = 0, write = 0, write_indexed = 0, skip_polls = 0;
};

/// Emits the shared code, to be placed at `origin`.
std::vector<u8> emit_runtime(u32 origin, Runtime& places);

/// Emits the traces, to be placed at `origin`. Every trace they lead to is among them or among `known`.
/// `blocks` receives one Block a trace.
std::vector<u8> emit_traces(u32 origin, const Runtime& runtime, const Prg& prg,
                            const std::vector<Trace>& traces, const Blocks& known,
                            std::vector<Block>& blocks);

}  // namespace wz::jit
