#pragma once

// The arithmetic of the net, written once. Each kernels_<set>.cpp includes this file and is compiled for its
// instruction set; see simd.hpp for why everything has internal linkage.

#include <cmath>
#include <cstring>

#include "net/kernels.hpp"
#include "net/simd.hpp"

namespace warpzone::net {
namespace {

// Register blocks: positions x output channels. Sized so that the accumulators, one block of inputs and one
// broadcast weight fit the register file, and so that at least 8 independent multiply-adds are in flight.
constexpr int kSpatialPositions = kVectors == 1 ? 3 : 1;
constexpr int kSpatialOutputs = kVectors == 1 ? 8 : kRegisters / (2 * kVectors);
constexpr int kDenseOutputs = kVectors == 1 ? 16 : kSpatialOutputs;

// Taps x output channels of a weight gradient; whole vectors of sums.
constexpr int kGradientTaps = 4;
constexpr int kGradientOutputs = kRegisters == 32 ? 4 : 2;

constexpr int min(int a, int b) { return a < b ? a : b; }

/// acc[q][p] += sum over k < count of w[k * w_stride + q] * x_p[x_offset(k)], the one inner loop of forward
/// and backward passes.
template <int P, int Q, class Offset>
[[gnu::always_inline]] inline void multiply_accumulate(Vec (&acc)[Q][P * kVectors], int count, const float* w,
                                                       std::ptrdiff_t w_stride, const float* const (&x)[P],
                                                       Offset x_offset) {
    for (int k = 0; k < count; ++k, w += w_stride) {
        const std::ptrdiff_t offset = x_offset(k);
        Vec in[P * kVectors];
        unroll<P>([&](auto p) {
            unroll<kVectors>([&](auto v) { in[p * kVectors + v] = load(x[p] + offset + v * kLanes); });
        });
        unroll<Q>([&](auto q) {
            const Vec weight = broadcast(w[q]);
            unroll<P * kVectors>([&](auto i) { acc[q][i] += weight * in[i]; });
        });
    }
}

/// Calls body.template operator()<P>(first) over [0, count) in steps of P = Step, then smaller ones.
template <int Step, class Body>
[[gnu::always_inline]] inline void in_steps(int count, Body body, int first = 0) {
    for (; first + Step <= count; first += Step) body.template operator()<Step>(first);
    if constexpr (Step > 1) in_steps<Step - 1>(count, body, first);
}

void load_plane(const std::uint8_t* const planes[kTile], int pixels, float* tile) {
    static_assert(kTile == 16);
    constexpr float kScale = 1.0f / 255.0f;
    int first = 0;
    for (; first + kVectorBytes <= pixels; first += kVectorBytes) {
        Bytes rows[kTile];
        for (int i = 0; i < kTile; ++i) std::memcpy(&rows[i], planes[i] + first, sizeof(Bytes));
        transpose_blocks(rows);
        // Row j now holds pixels j, j + 16, ... of all samples.
        alignas(kVectorBytes) std::uint8_t bytes[16][kVectorBytes];
        std::memcpy(bytes, rows, sizeof bytes);
        for (int block = 0; block < kVectorBytes / 16; ++block) {
            float* to = tile + (first + block * 16) * kTile;
            for (int j = 0; j < 16; ++j) widen(bytes[j] + block * 16, kScale, to + j * kTile);
        }
    }
    for (; first < pixels; ++first)
        for (int i = 0; i < kTile; ++i)
            tile[first * kTile + i] = static_cast<float>(planes[i][first]) * kScale;
}

void pack(const float* weights, int inputs, int outputs_left, int block, int begin, int end, float* packed) {
    int q = 0;
    for (; q + 4 <= min(block, outputs_left); q += 4) {
        const float* rows = weights + static_cast<std::ptrdiff_t>(q) * inputs;
        int k = begin;
        for (; k + 4 <= end; k += 4) transpose4(rows + k, inputs, packed + k * block + q, block);
        for (; k < end; ++k)
            for (int i = 0; i < 4; ++i) packed[k * block + q + i] = rows[i * inputs + k];
    }
    for (; q < block; ++q)
        for (int k = begin; k < end; ++k)
            packed[k * block + q] =
                q < outputs_left ? weights[static_cast<std::ptrdiff_t>(q) * inputs + k] : 0.0f;
}

template <int P, int Q>
[[gnu::always_inline]] inline void forward_block(const LayerView& layer, const float* packed,
                                                 const float* bias, const float* x, int position, int output,
                                                 float* y) {
    const int outputs = min(Q, layer.outputs - output);
    Vec acc[Q][P * kVectors];
    unroll<Q>([&](auto q) {
        const Vec start = q < outputs ? broadcast(bias[output + q]) : Vec{};
        unroll<P * kVectors>([&](auto i) { acc[q][i] = start; });
    });
    const float* origin[P];
    unroll<P>([&](auto p) { origin[p] = x + layer.origins[position + p]; });
    const std::int32_t* taps = layer.taps;
    multiply_accumulate<P, Q>(acc, layer.inputs, packed + static_cast<std::ptrdiff_t>(output) * layer.inputs,
                              Q, origin, [&](int k) { return static_cast<std::ptrdiff_t>(taps[k]); });
    unroll<Q>([&](auto q) {
        if (q >= outputs) return;
        float* row = y + (static_cast<std::ptrdiff_t>(output + q) * layer.positions + position) * kTile;
        unroll<P * kVectors>([&](auto i) {
            store(row + i * kLanes, layer.relu ? where_positive(acc[q][i], acc[q][i]) : acc[q][i]);
        });
    });
}

void forward(const LayerView& layer, const float* packed, const float* bias, const float* x, float* y) {
    if (layer.positions == 1) {
        for (int output = 0; output < layer.outputs; output += kDenseOutputs)
            forward_block<1, kDenseOutputs>(layer, packed, bias, x, 0, output, y);
        return;
    }
    in_steps<kSpatialPositions>(layer.positions, [&]<int P>(int position) __attribute__((always_inline)) {
        for (int output = 0; output < layer.outputs; output += kSpatialOutputs)
            forward_block<P, kSpatialOutputs>(layer, packed, bias, x, position, output, y);
    });
}

template <int P, int Q>
[[gnu::always_inline]] inline void backward_block(const LayerView& layer, const float* weights,
                                                  const float* dy, int position, int tap, float* dx) {
    Vec acc[Q][P * kVectors];
    unroll<Q>([&](auto q) { unroll<P * kVectors>([&](auto i) { acc[q][i] = Vec{}; }); });
    const std::ptrdiff_t plane = static_cast<std::ptrdiff_t>(layer.positions) * kTile;
    const float* at[P];
    unroll<P>([&](auto p) { at[p] = dy + (position + p) * kTile; });
    multiply_accumulate<P, Q>(acc, layer.outputs, weights + tap, layer.inputs, at,
                              [&](int output) { return output * plane; });
    const int taps = min(Q, layer.inputs - tap);
    unroll<Q>([&](auto q) {
        if (q >= taps) return;
        unroll<P>([&](auto p) {
            float* to = dx + layer.taps[tap + q] + layer.origins[position + p];
            unroll<kVectors>(
                [&](auto v) { store(to + v * kLanes, load(to + v * kLanes) + acc[q][p * kVectors + v]); });
        });
    });
}

void backward(const LayerView& layer, const float* weights, const float* dy, float* dx) {
    if (layer.positions == 1) {
        for (int tap = 0; tap < layer.inputs; tap += kDenseOutputs)
            backward_block<1, kDenseOutputs>(layer, weights, dy, 0, tap, dx);
        return;
    }
    in_steps<kSpatialPositions>(layer.positions, [&]<int P>(int position) __attribute__((always_inline)) {
        for (int tap = 0; tap < layer.inputs; tap += kSpatialOutputs)
            backward_block<P, kSpatialOutputs>(layer, weights, dy, position, tap, dx);
    });
}

void activation_backward(const LayerView& layer, const float* y, float* dy, float* bias_gradient) {
    const std::ptrdiff_t plane = static_cast<std::ptrdiff_t>(layer.positions) * kTile;
    for (int output = 0; output < layer.outputs; ++output, y += plane, dy += plane) {
        Vec sum{};
        for (std::ptrdiff_t i = 0; i < plane; i += kLanes) {
            const Vec d = layer.relu ? where_positive(load(y + i), load(dy + i)) : load(dy + i);
            if (layer.relu) store(dy + i, d);
            sum += d;
        }
        bias_gradient[output] = horizontal_sum(sum);
    }
}

void weight_gradient(const LayerView& layer, const Places& places, int output_begin, int output_end,
                     int tap_begin, int tap_end, bool accumulate, float* gradient) {
    constexpr int K = kGradientTaps, O = kGradientOutputs;
    for (int tap = tap_begin; tap < tap_end; tap += K) {
        // A block at the edge computes its last tap or output again and drops the copies.
        const float* x[K];
        unroll<K>([&](auto k) { x[k] = places.inputs + layer.taps[min(tap + k, tap_end - 1)]; });
        const int taps = min(K, tap_end - tap);
        for (int output = output_begin; output < output_end; output += O) {
            const float* dy[O];
            unroll<O>([&](auto o) {
                dy[o] = places.output_gradients + min(output + o, output_end - 1) * places.output_stride;
            });
            Vec acc[O * K] = {};
            for (int place = 0; place < places.count; ++place) {
                const std::int64_t in = places.input_offsets[place];
                const std::int64_t out = places.output_offsets[place];
                unroll<kVectors>([&](auto v) {
                    Vec a[K];
                    unroll<K>([&](auto k) { a[k] = load(x[k] + in + v * kLanes); });
                    unroll<O>([&](auto o) {
                        const Vec d = load(dy[o] + out + v * kLanes);
                        unroll<K>([&](auto k) { acc[o * K + k] += a[k] * d; });
                    });
                });
            }
            alignas(kVectorBytes) float sums[O * K];
            horizontal_sums(acc, sums);
            const int outputs = min(O, output_end - output);
            for (int o = 0; o < outputs; ++o) {
                float* to = gradient + static_cast<std::ptrdiff_t>(output + o) * layer.inputs + tap;
                for (int k = 0; k < taps; ++k) to[k] = accumulate ? to[k] + sums[o * K + k] : sums[o * K + k];
            }
        }
    }
}

double sum_of_squares(const float* values, std::int64_t count) {
    constexpr int kChains = 16;
    float sums[kChains] = {};
    std::int64_t i = 0;
    for (; i + kChains <= count; i += kChains)
        for (int c = 0; c < kChains; ++c) sums[c] += values[i + c] * values[i + c];
    double total = 0.0;
    for (int c = 0; c < kChains; ++c) total += static_cast<double>(sums[c]);
    for (; i < count; ++i) total += static_cast<double>(values[i] * values[i]);
    return total;
}

void adam(const AdamStep& step, std::int64_t count, const float* __restrict gradient,
          float* __restrict weights, float* __restrict first_moment, float* __restrict second_moment) {
    const AdamStep s = step;
    for (std::int64_t i = 0; i < count; ++i) {
        const float g = gradient[i] * s.gradient_scale;
        const float m = s.beta1 * first_moment[i] + s.one_minus_beta1 * g;
        const float v = s.beta2 * second_moment[i] + s.one_minus_beta2 * g * g;
        first_moment[i] = m;
        second_moment[i] = v;
        weights[i] -= s.step_size * m / (std::sqrt(v) * s.second_moment_factor + s.epsilon);
    }
}

/// All of the above under one name.
constexpr Kernels make_kernels(const char* name) {
    return {
        .name = name,
        .spatial_block = kSpatialOutputs,
        .dense_block = kDenseOutputs,
        .load_plane = load_plane,
        .pack = pack,
        .forward = forward,
        .backward = backward,
        .activation_backward = activation_backward,
        .weight_gradient = weight_gradient,
        .sum_of_squares = sum_of_squares,
        .adam = adam,
    };
}

}  // namespace
}  // namespace warpzone::net
