#pragma once

#include <cstddef>
#include <cstdint>

namespace warpzone::net {

/// Samples that travel together. Inside the net every value of a tile is `kTile` consecutive floats, one per
/// sample ("samples innermost"), so a layer is nothing but broadcast-weight multiply-adds over whole vectors:
/// no shuffles, no remainders over channels, the same code for convolutions and dense layers.
inline constexpr int kTile = 16;

/// A layer as the kernels see it: `outputs` dot products of length `inputs`, taken at `positions` places.
///
/// A convolution has one position per output pixel and `inputs = channels * kernel * kernel`; a dense layer
/// is the case `positions == 1`. Tap k of position p reads the value at `taps[k] + origins[p]` (offsets in
/// floats, multiples of kTile). Outputs are laid out `[outputs][positions][kTile]`, weights as torch has
/// them,
/// `[outputs][inputs]`.
struct LayerView {
    int inputs;
    int outputs;
    int positions;
    bool relu;
    const std::int32_t* taps;
    const std::int32_t* origins;
};

}  // namespace warpzone::net
