#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "net/layer.hpp"

namespace warpzone::net {

/// Settings of one Adam step, with the bias corrections already worked out.
struct AdamStep {
    float gradient_scale;  ///< Multiplies the gradient: what clipping by the global norm leaves.
    float beta1;
    float beta2;
    float one_minus_beta1;  ///< Rounded from the exact difference, which matters for beta2.
    float one_minus_beta2;
    float step_size;             ///< Learning rate / (1 - beta1^t).
    float second_moment_factor;  ///< 1 / sqrt(1 - beta2^t).
    float epsilon;
};

/// Where the samples of a weight gradient lie: `count` places, place i at `inputs + input_offsets[i]` and
/// `outputs + output_offsets[i]`. For a convolution the places are the positions of one tile, for a dense
/// layer the tiles of a minibatch.
struct Places {
    const float* inputs;
    const float* output_gradients;
    std::ptrdiff_t output_stride;  ///< Floats between consecutive output channels at one place.
    const std::int64_t* input_offsets;
    const std::int64_t* output_offsets;
    int count;
};

/// The arithmetic, once per instruction set. All float pointers that hold tiles are aligned to 64 bytes.
/// No kernel allocates or throws, and each result depends on nothing but its arguments.
struct Kernels {
    const char* name;

    /// Output channels per block of packed weights, for layers with many positions and with one.
    int spatial_block;
    int dense_block;

    /// planes[i][j] / 255 -> tile[j][i]: one channel of kTile samples, `pixels` bytes each, samples
    /// innermost.
    void (*load_plane)(const std::uint8_t* const planes[kTile], int pixels, float* tile);

    /// Packs weights of `block` consecutive outputs, taps [begin, end), as [taps][block]; outputs past the
    /// last one are packed as zeros. `packed` is the start of the block's own [inputs][block] area.
    void (*pack)(const float* weights, int inputs, int outputs_left, int block, int begin, int end,
                 float* packed);

    /// y = layer(x), with ReLU where the layer has one. `packed` are all blocks, one after the other.
    void (*forward)(const LayerView& layer, const float* packed, const float* bias, const float* x, float* y);

    /// dx += what dy says about the layer's input. May read up to kTile floats past the last weight.
    void (*backward)(const LayerView& layer, const float* weights, const float* dy, float* dx);

    /// Multiplies dy by the derivative of the ReLU (y > 0) where the layer has one, and writes the bias
    /// gradient.
    void (*activation_backward)(const LayerView& layer, const float* y, float* dy, float* bias_gradient);

    /// Gradient of the weights of outputs [output_begin, output_end) and taps [tap_begin, tap_end), summed
    /// over the places; added to `gradient` ([outputs][inputs]) where `accumulate`, else stored there.
    void (*weight_gradient)(const LayerView& layer, const Places& places, int output_begin, int output_end,
                            int tap_begin, int tap_end, bool accumulate, float* gradient);

    double (*sum_of_squares)(const float* values, std::int64_t count);

    void (*adam)(const AdamStep& step, std::int64_t count, const float* gradient, float* weights,
                 float* first_moment, float* second_moment);
};

/// Kernels this build has and this processor can run, best first.
std::vector<const Kernels*> available_kernels();

/// The kernels with that name, or those of the chosen instruction set (simd/sets.hpp) for an empty name;
/// throws std::invalid_argument if there are none.
const Kernels& find_kernels(const std::string& name);

}  // namespace warpzone::net
