#pragma once
#include <memory>
#include <vector>

#include "nes/machine.hpp"

namespace wz::test {

/// xorshift64*: the same numbers everywhere.
class Random {
  public:
    explicit Random(u64 seed) : state_(seed * 0x9E3779B97F4A7C15ull + 0x1234567) {}
    u32 next() {
        state_ ^= state_ >> 12, state_ ^= state_ << 25, state_ ^= state_ >> 27;
        return static_cast<u32>(state_ * 0x2545F4914F6CDD1Dull >> 32);
    }
    u32 below(u32 n) { return static_cast<u32>(u64{next()} * n >> 32); }
    u8 byte() { return static_cast<u8>(next()); }
    bool chance(u32 percent) { return below(100) < percent; }

  private:
    u64 state_;
};

/// Bytes that are any instruction, official or not.
std::vector<u8> byte_soup(Random& r);
/// Instructions as compilers of the time would not have written them, but which mostly keep going: loops,
/// calls, waits, pointers, and operands at every kind of address and around every boundary.
std::vector<u8> structured_program(Random& r);

/// Wraps 32 KB of program, with its vectors, and random patterns into a cartridge.
std::shared_ptr<const Cartridge> cartridge_of(const std::vector<u8>& prg, Random& r);

}  // namespace wz::test
