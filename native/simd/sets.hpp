#pragma once
#include <stdexcept>
#include <string>
#include <vector>

/// Code for several instruction sets in one program; which runs is decided when it starts.
namespace wz::simd {

/// WARPZONE_SIMD names an instruction set that is not there. The message is a sentence for the user.
struct SetError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// Instruction sets that this build has code for and this processor can run, best first: "avx512", "avx2"
/// and "baseline" on x86-64, "dotprod" and "neon" on ARM, "baseline" elsewhere.
std::vector<std::string> instruction_sets();

/// The best of them, or the one that WARPZONE_SIMD names. Throws SetError.
std::string chosen_set();

}  // namespace wz::simd
