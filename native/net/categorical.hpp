#pragma once

#include <cmath>
#include <cstdint>

#include "net/layer.hpp"

namespace warpzone::net {

/// Log-probabilities of one sample's actions: `logits` and `log_probabilities` have kTile floats between
/// consecutive actions, as everything in a tile has.
inline void log_softmax(const float* logits, int actions, float* log_probabilities) {
    float largest = logits[0];
    for (int a = 1; a < actions; ++a) largest = logits[a * kTile] > largest ? logits[a * kTile] : largest;
    float sum = 0.0f;
    for (int a = 0; a < actions; ++a) sum += std::exp(logits[a * kTile] - largest);
    const float shift = largest + std::log(sum);
    for (int a = 0; a < actions; ++a) log_probabilities[a * kTile] = logits[a * kTile] - shift;
}

/// A number in [0, 1) that depends on nothing but its arguments: no state to share between threads, and the
/// same numbers whichever thread asks.
inline float uniform(std::uint64_t seed, std::uint64_t step, std::uint64_t lane) {
    const auto mix = [](std::uint64_t z) {  // the finaliser of splitmix64
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
        return z ^ (z >> 31);
    };
    constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15ull;
    const std::uint64_t bits = mix(mix(mix(seed + kGolden) + step + kGolden) + lane + kGolden);
    return static_cast<float>(bits >> 40) * 0x1p-24f;
}

/// The action at the `u`-th part of the distribution.
inline int sample(const float* log_probabilities, int actions, float u) {
    float sum = 0.0f;
    for (int a = 0; a < actions - 1; ++a) {
        sum += std::exp(log_probabilities[a * kTile]);
        if (u < sum) return a;
    }
    return actions - 1;
}

}  // namespace warpzone::net
