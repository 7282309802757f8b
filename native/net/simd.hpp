#pragma once

// Included only where code is compiled for one instruction set of several: everything here has internal
// linkage, so that code for one instruction set can never be linked into another's place.

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include <cstddef>
#include <cstdint>
#include <utility>

#include "net/layer.hpp"

namespace warpzone::net {
namespace {

#if defined(__AVX512F__)
inline constexpr int kVectorBytes = 64;
inline constexpr int kRegisters = 32;
#elif defined(__AVX__)
inline constexpr int kVectorBytes = 32;
inline constexpr int kRegisters = 16;
#elif defined(__aarch64__)
inline constexpr int kVectorBytes = 16;
inline constexpr int kRegisters = 32;
#else
inline constexpr int kVectorBytes = 16;
inline constexpr int kRegisters = 16;
#endif

inline constexpr int kLanes = kVectorBytes / static_cast<int>(sizeof(float));
/// Vectors that make one tile's value.
inline constexpr int kVectors = kTile / kLanes;

typedef float Vec __attribute__((vector_size(kVectorBytes), may_alias));
typedef std::int32_t VecInt __attribute__((vector_size(kVectorBytes), may_alias));
typedef float Vec4 __attribute__((vector_size(16), may_alias, aligned(4)));
typedef std::uint8_t Bytes __attribute__((vector_size(kVectorBytes), may_alias));

/// Calls f(0), ..., f(N - 1) with compile-time indices: arrays indexed that way stay in registers.
template <int N, class F>
[[gnu::always_inline]] inline void unroll(F&& f) {
    [&]<int... I>(std::integer_sequence<int, I...>) __attribute__((always_inline)) {
        (f(std::integral_constant<int, I>{}), ...);
    }(std::make_integer_sequence<int, N>{});
}

[[gnu::always_inline]] inline Vec load(const float* p) { return *reinterpret_cast<const Vec*>(p); }
[[gnu::always_inline]] inline void store(float* p, Vec v) { *reinterpret_cast<Vec*>(p) = v; }
[[gnu::always_inline]] inline Vec broadcast(float x) { return x - Vec{}; }

/// kTile bytes as floats, to an aligned place. Intrinsics, as GCC widens bytes one by one otherwise.
[[gnu::always_inline]] inline void widen(const std::uint8_t* bytes, float scale, float* to) {
#if defined(__AVX512F__)
    const __m128i all = _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes));
    // Masked by nothing: GCC 12 warns about its own header in the plain form.
    const auto wide = reinterpret_cast<VecInt>(_mm512_maskz_cvtepu8_epi32(0xffff, all));
    store(to, __builtin_convertvector(wide, Vec) * scale);
#elif defined(__AVX2__)
    for (int i = 0; i < kTile; i += kLanes) {
        const __m128i some = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(bytes + i));
        const auto wide = reinterpret_cast<VecInt>(_mm256_cvtepu8_epi32(some));
        store(to + i, __builtin_convertvector(wide, Vec) * scale);
    }
#else
    for (int i = 0; i < kTile; ++i) to[i] = static_cast<float>(bytes[i]) * scale;
#endif
}

/// The value where `gate` is positive, else zero.
[[gnu::always_inline]] inline Vec where_positive(Vec gate, Vec value) {
    const VecInt mask = gate > Vec{};
    return reinterpret_cast<Vec>(reinterpret_cast<VecInt>(value) & mask);
}

/// Adds neighbouring blocks of `Block` lanes: the sums of `a` land in even blocks, those of `b` in odd ones.
template <int Block, int... I>
[[gnu::always_inline]] inline Vec fold(Vec a, Vec b, std::integer_sequence<int, I...>) {
    constexpr auto from_b = [](int lane) { return (lane / Block) % 2 == 1; };
    const Vec even = __builtin_shufflevector(a, b, (from_b(I) ? kLanes + I - Block : I)...);
    const Vec odd = __builtin_shufflevector(a, b, (from_b(I) ? kLanes + I : I + Block)...);
    return even + odd;
}

template <int Block, int N>
[[gnu::always_inline]] inline void fold_levels(Vec (&v)[N], int count) {
    if constexpr (Block < kLanes) {
        for (int i = 0; i < count / 2; ++i)
            v[i] = fold<Block>(v[2 * i], v[2 * i + 1], std::make_integer_sequence<int, kLanes>{});
        fold_levels<Block * 2>(v, count / 2);
    }
}

/// sums[i] = sum over the lanes of v[i]. N is a multiple of kLanes; `sums` is aligned to a vector; v is
/// spent.
template <int N>
[[gnu::always_inline]] inline void horizontal_sums(Vec (&v)[N], float* sums) {
    static_assert(N % kLanes == 0);
    fold_levels<1>(v, N);
    for (int i = 0; i < N / kLanes; ++i) store(sums + i * kLanes, v[i]);
}

template <int Block = 1>
[[gnu::always_inline]] inline float horizontal_sum(Vec v) {
    if constexpr (Block < kLanes) {
        return horizontal_sum<Block * 2>(fold<Block>(v, v, std::make_integer_sequence<int, kLanes>{}));
    } else {
        return v[0];
    }
}

/// Interleaves the low (`Half` 0) or high (1) halves of every 16 bytes of a and b.
template <int Half, int... I>
[[gnu::always_inline]] inline Bytes interleave(Bytes a, Bytes b, std::integer_sequence<int, I...>) {
    constexpr auto from = [](int i) { return i / 16 * 16 + Half * 8 + i % 16 / 2 + i % 2 * kVectorBytes; };
    return __builtin_shufflevector(a, b, from(I)...);
}

/// Transposes each 16 x 16 block of bytes: v[i] holds row i of kVectorBytes / 16 blocks side by side.
[[gnu::always_inline]] inline void transpose_blocks(Bytes (&v)[16]) {
    constexpr std::make_integer_sequence<int, kVectorBytes> kAll;
    unroll<4>([&](auto) {
        Bytes next[16];
        unroll<8>([&](auto i) {
            next[2 * i] = interleave<0>(v[i], v[i + 8], kAll);
            next[2 * i + 1] = interleave<1>(v[i], v[i + 8], kAll);
        });
        unroll<16>([&](auto i) { v[i] = next[i]; });
    });
}

[[gnu::always_inline]] inline Vec4 load4(const float* p) { return *reinterpret_cast<const Vec4*>(p); }
[[gnu::always_inline]] inline void store4(float* p, Vec4 v) { *reinterpret_cast<Vec4*>(p) = v; }

/// out[j * out_stride + i] = in[i * in_stride + j] for a 4 x 4 block.
[[gnu::always_inline]] inline void transpose4(const float* in, std::ptrdiff_t in_stride, float* out,
                                              std::ptrdiff_t out_stride) {
    const Vec4 a = load4(in), b = load4(in + in_stride), c = load4(in + 2 * in_stride),
               d = load4(in + 3 * in_stride);
    const Vec4 ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5);
    const Vec4 ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
    const Vec4 cd_low = __builtin_shufflevector(c, d, 0, 4, 1, 5);
    const Vec4 cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
    store4(out, __builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5));
    store4(out + out_stride, __builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7));
    store4(out + 2 * out_stride, __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5));
    store4(out + 3 * out_stride, __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7));
}

}  // namespace
}  // namespace warpzone::net
