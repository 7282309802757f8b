#pragma once
#include "nes/types.hpp"

namespace wz {

/// A small random stream, one for each environment (SplitMix64).
struct Random {
    u64 state = 0;
    u64 next() {
        u64 z = (state += 0x9E3779B97F4A7C15ull);
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9ull;
        z = (z ^ z >> 27) * 0x94D049BB133111EBull;
        return z ^ z >> 31;
    }
    double uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }
    int below(int n) { return static_cast<int>((next() >> 32) * static_cast<u64>(n) >> 32); }
};

}  // namespace wz
