#pragma once
// Included once for each instruction set. Everything here is internal to the file that includes it, and
// nothing inline from elsewhere is called, so that no function made for one processor is linked into
// another's code.
#include <cstddef>
#include <cstring>

#include "simd/kernels.hpp"
#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__ARM_NEON)
#include <arm_neon.h>
#endif

namespace wz::simd {
namespace {

// ---- tiles ----

inline const u8* tile(const Kernels::Tiles& t, int i) { return t.first + t.names[i] * 64; }
inline u8 slot(const Kernels::Tiles& t, int i) { return t.slots[(i + t.odd) >> 1]; }

// Two tiles at a time, so that a store is sixteen bytes.
#if defined(__AVX2__)

inline __m128i load_line(const u8* from) { return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from)); }

/// The four values of a tile's palette, again and again.
inline __m256i palette_at(const u8* values) {
    int four;
    std::memcpy(&four, values, 4);
    return _mm256_set1_epi32(four);
}

// What `tiles` points to is read anew for every tile unless it is copied: a store of bytes could change it.
void draw_tiles(const Kernels::Tiles& tiles, int pairs, int rows, u8* line, int stride) {
    const Kernels::Tiles t = tiles;
    if (rows < 8) {
        for (int i = 0; i < 2 * pairs; i += 2, line += 16) {
            const u8 *left = tile(t, i), *right = tile(t, i + 1);
            const __m128i low = _mm256_castsi256_si128(palette_at(t.values + slot(t, i))),
                          high = _mm256_castsi256_si128(palette_at(t.values + slot(t, i + 1)));
            for (int r = 0; r < rows; ++r)
                _mm_storeu_si128(reinterpret_cast<__m128i*>(line + r * stride),
                                 _mm_unpacklo_epi64(_mm_shuffle_epi8(low, load_line(left + r * 8)),
                                                    _mm_shuffle_epi8(high, load_line(right + r * 8))));
        }
        return;
    }
    const std::ptrdiff_t next = stride;
    auto four_lines = [next](const u8* left, const u8* right, __m256i left_palette, __m256i right_palette,
                             u8* to) {
        const __m256i a =
            _mm256_shuffle_epi8(left_palette, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(left)));
        const __m256i b =
            _mm256_shuffle_epi8(right_palette, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(right)));
        const __m256i even = _mm256_unpacklo_epi64(a, b), odd = _mm256_unpackhi_epi64(a, b);
        auto at = [&](int r) { return reinterpret_cast<__m128i*>(to + r * next); };
        _mm_storeu_si128(at(0), _mm256_castsi256_si128(even));
        _mm_storeu_si128(at(1), _mm256_castsi256_si128(odd));
        _mm_storeu_si128(at(2), _mm256_extracti128_si256(even, 1));
        _mm_storeu_si128(at(3), _mm256_extracti128_si256(odd, 1));
    };
    u8* half = line + 4 * next;
    for (std::ptrdiff_t i = 0; i < 2 * pairs; i += 2, line += 16, half += 16) {
        const u8 *left = t.first + t.names[i] * 64, *right = t.first + t.names[i + 1] * 64;
        const u8* slots = t.slots + (i >> 1);
        const __m256i left_palette = palette_at(t.values + slots[0]),
                      right_palette = palette_at(t.values + slots[t.odd]);
        four_lines(left, right, left_palette, right_palette, line);
        four_lines(left + 32, right + 32, left_palette, right_palette, half);
    }
}

#elif defined(__SSE2__)

void draw_tiles(const Kernels::Tiles& t, int pairs, int rows, u8* line, int stride) {
    // value = first ^ (low & by_low) ^ (high & by_high) ^ (low & high & by_both), for each attribute.
    __m128i choices[4][4];
    for (int k = 0; k < 4; ++k) {
        const u8* v = t.values + k * 4;
        const int changes[4] = {v[0], v[0] ^ v[1], v[0] ^ v[2], v[0] ^ v[1] ^ v[2] ^ v[3]};
        for (int n = 0; n < 4; ++n) choices[k][n] = _mm_set1_epi8(static_cast<char>(changes[n]));
    }
    const __m128i one = _mm_set1_epi8(1), two = _mm_set1_epi8(2);
    for (int i = 0; i < 2 * pairs; i += 2, line += 16) {
        __m128i c[4];
        for (int n = 0; n < 4; ++n)
            c[n] = _mm_unpacklo_epi64(choices[slot(t, i) / 4][n], choices[slot(t, i + 1) / 4][n]);
        const u8 *left = tile(t, i), *right = tile(t, i + 1);
        for (int r = 0; r < rows; ++r) {
            const __m128i pixels =
                _mm_unpacklo_epi64(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(left + r * 8)),
                                   _mm_loadl_epi64(reinterpret_cast<const __m128i*>(right + r * 8)));
            const __m128i low = _mm_cmpeq_epi8(_mm_and_si128(pixels, one), one);
            const __m128i high = _mm_cmpeq_epi8(_mm_and_si128(pixels, two), two);
            const __m128i single = _mm_xor_si128(_mm_and_si128(low, c[1]), _mm_and_si128(high, c[2]));
            const __m128i both = _mm_and_si128(_mm_and_si128(low, high), c[3]);
            _mm_storeu_si128(reinterpret_cast<__m128i*>(line + r * stride),
                             _mm_xor_si128(_mm_xor_si128(c[0], single), both));
        }
    }
}

#elif defined(__ARM_NEON)

// As above, `tiles` is copied. A whole tile is four registers of two lines each.
void draw_tiles(const Kernels::Tiles& tiles, int pairs, int rows, u8* line, int stride) {
    const Kernels::Tiles t = tiles;
    const uint8x16_t table = vld1q_u8(t.values);
    for (int i = 0; i < 2 * pairs; i += 2, line += 16) {
        const uint8x16_t slots = vcombine_u8(vdup_n_u8(slot(t, i)), vdup_n_u8(slot(t, i + 1)));
        const u8 *left = tile(t, i), *right = tile(t, i + 1);
        auto put = [&](int r, uint8x16_t pixels) {
            vst1q_u8(line + r * stride, vqtbl1q_u8(table, vorrq_u8(slots, pixels)));
        };
        if (rows == 8) {
            for (int r = 0; r < 8; r += 2) {
                const uint64x2_t a = vreinterpretq_u64_u8(vld1q_u8(left + r * 8)),
                                 b = vreinterpretq_u64_u8(vld1q_u8(right + r * 8));
                put(r, vreinterpretq_u8_u64(vzip1q_u64(a, b)));
                put(r + 1, vreinterpretq_u8_u64(vzip2q_u64(a, b)));
            }
            continue;
        }
        for (int r = 0; r < rows; ++r) put(r, vcombine_u8(vld1_u8(left + r * 8), vld1_u8(right + r * 8)));
    }
}

#else

void draw_tiles(const Kernels::Tiles& t, int pairs, int rows, u8* line, int stride) {
    for (int i = 0; i < 2 * pairs; ++i, line += 8)
        for (int r = 0; r < rows; ++r)
            for (int x = 0; x < 8; ++x) line[r * stride + x] = t.values[slot(t, i) + tile(t, i)[r * 8 + x]];
}

#endif

// ---- look-up ----

void map_bytes(const u8* in, u8* out, int count, const u8* table) {
#if defined(__AVX2__)
    __m256i t[4];
    for (int k = 0; k < 4; ++k)
        t[k] = _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(table + 16 * k)));
    for (int i = 0; i < count; i += 32) {
        const __m256i x = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(in + i));
        const __m256i low = _mm256_and_si256(x, _mm256_set1_epi8(15));
        // Bits 4 and 5 move to the sign bit, where the blend looks for them.
        const __m256i bit4 = _mm256_slli_epi16(x, 3), bit5 = _mm256_slli_epi16(x, 2);
        const __m256i a =
            _mm256_blendv_epi8(_mm256_shuffle_epi8(t[0], low), _mm256_shuffle_epi8(t[1], low), bit4);
        const __m256i b =
            _mm256_blendv_epi8(_mm256_shuffle_epi8(t[2], low), _mm256_shuffle_epi8(t[3], low), bit4);
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i), _mm256_blendv_epi8(a, b, bit5));
    }
#elif defined(__ARM_NEON)
    const uint8x16x4_t t = {vld1q_u8(table), vld1q_u8(table + 16), vld1q_u8(table + 32),
                            vld1q_u8(table + 48)};
    for (int i = 0; i < count; i += 16)
        vst1q_u8(out + i, vqtbl4q_u8(t, vandq_u8(vld1q_u8(in + i), vdupq_n_u8(63))));
#else
    for (int i = 0; i < count; ++i) out[i] = table[in[i] & 63];
#endif
}

// ---- shrinking ----

void brighter(const u8* a, const u8* b, u8* out) {
    for (int x = 0; x < Kernels::kWidth; ++x) out[x] = a[x] > b[x] ? a[x] : b[x];
}

// (sum + 1/2) / divisor is at least 1/8192 away from a whole number, far more than the rounding error of
// single precision: truncating gives the exact quotient.

#if defined(__AVX512BW__)

/// Sixteen outputs at a time, from lines to bytes without leaving the registers. What the outputs are made of
/// is loaded once for all rows.
void shrink_lanes(const Lines* rows, int count, const Columns& c, u8* out) {
    const int width = c.width, half = c.divisor / 2;
    const __m512 scale = _mm512_set1_ps(c.scale),
                 nudge = _mm512_set1_ps((static_cast<float>(half) + 0.5f) * c.scale);
    u32 pairs[Kernels::kRows][2];
    for (int r = 0; r < count; ++r)
        for (int i = 0; i < 2; ++i)
            pairs[r][i] =
                (rows[r].weight[2 * i] | static_cast<u32>(rows[r].weight[2 * i + 1]) << 8) * 0x10001;
    const Columns::Lanes* l = c.lanes;
    for (int i = 0; i < width; i += 16, ++l) {
        const __m512i index0 = _mm512_load_si512(l->index[0]), index1 = _mm512_load_si512(l->index[1]),
                      weight0 = _mm512_load_si512(l->weight[0]), weight1 = _mm512_load_si512(l->weight[1]);
        const auto kept = static_cast<__mmask16>(width - i >= 16 ? 0xFFFF : (1 << (width - i)) - 1);
        const int first = l->first;
        for (int r = 0; r < count; ++r) {
            const Lines& from = rows[r];
            const __m512i v0 = _mm512_loadu_si512(from.at[0] + first),
                          v1 = _mm512_loadu_si512(from.at[1] + first),
                          v2 = _mm512_loadu_si512(from.at[2] + first),
                          v3 = _mm512_loadu_si512(from.at[3] + first);
            const __m512i w01 = _mm512_set1_epi32(static_cast<int>(pairs[r][0])),
                          w23 = _mm512_set1_epi32(static_cast<int>(pairs[r][1]));
            const __m512i low = _mm512_add_epi16(_mm512_maddubs_epi16(_mm512_unpacklo_epi8(v0, v1), w01),
                                                 _mm512_maddubs_epi16(_mm512_unpacklo_epi8(v2, v3), w23));
            const __m512i high = _mm512_add_epi16(_mm512_maddubs_epi16(_mm512_unpackhi_epi8(v0, v1), w01),
                                                  _mm512_maddubs_epi16(_mm512_unpackhi_epi8(v2, v3), w23));
            const __m512i sum =
                _mm512_add_epi32(_mm512_madd_epi16(_mm512_permutex2var_epi16(low, index0, high), weight0),
                                 _mm512_madd_epi16(_mm512_permutex2var_epi16(low, index1, high), weight1));
            const __m512i mean = _mm512_cvttps_epi32(_mm512_fmadd_ps(_mm512_cvtepi32_ps(sum), scale, nudge));
            _mm512_mask_cvtepi32_storeu_epi8(out + r * width + i, kept, mean);
        }
    }
}

#endif

void weigh_lines(const Lines& lines, u16* sums) {
    const u8* const* line = lines.at;
    const u16* weight = lines.weight;
#if defined(__AVX2__)
    auto pair = [&](int i) { return _mm256_set1_epi16(static_cast<short>(weight[i] | weight[i + 1] << 8)); };
    const __m256i w01 = pair(0), w23 = pair(2);
    for (int x = 0; x < Kernels::kWidth; x += 32) {
        __m256i v[4];
        for (int i = 0; i < 4; ++i) v[i] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(line[i] + x));
        auto sum = [&](__m256i first, __m256i second) {
            return _mm256_add_epi16(_mm256_maddubs_epi16(first, w01), _mm256_maddubs_epi16(second, w23));
        };
        const __m256i a = sum(_mm256_unpacklo_epi8(v[0], v[1]), _mm256_unpacklo_epi8(v[2], v[3]));
        const __m256i b = sum(_mm256_unpackhi_epi8(v[0], v[1]), _mm256_unpackhi_epi8(v[2], v[3]));
        auto* to = reinterpret_cast<__m256i*>(sums + x);
        _mm256_storeu_si256(to, _mm256_permute2x128_si256(a, b, 0x20));
        _mm256_storeu_si256(to + 1, _mm256_permute2x128_si256(a, b, 0x31));
    }
#else
    for (int x = 0; x < Kernels::kWidth; ++x)
        sums[x] = static_cast<u16>(line[0][x] * weight[0] + line[1][x] * weight[1] + line[2][x] * weight[2] +
                                   line[3][x] * weight[3]);
#endif
}

/// Reads up to four sums behind the last column, of weight zero.
void weigh_columns(const Columns& c, const u16* sums, u8* out) {
    const int half = c.divisor / 2;
    int i = 0;
#if defined(__AVX2__)
    const __m256 scale = _mm256_set1_ps(c.scale), nudge = _mm256_set1_ps(0.5f);
    const __m256i round = _mm256_set1_epi32(half);
    auto sums_of_two = [&](int at) {
        const __m128i low = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(sums + c.first[at]));
        const __m64* high = reinterpret_cast<const __m64*>(sums + c.first[at + 1]);
        return _mm_castps_si128(_mm_loadh_pi(_mm_castsi128_ps(low), high));
    };
    // The four taps of outputs at, at + 1, at + 4 and at + 5, as sums of two.
    auto four = [&](int at) {
        const __m256i four_sums = _mm256_set_m128i(sums_of_two(at + 4), sums_of_two(at));
        const __m256i weights =
            _mm256_set_m128i(_mm_loadu_si128(reinterpret_cast<const __m128i*>(c.weights + (at + 4) * 4)),
                             _mm_loadu_si128(reinterpret_cast<const __m128i*>(c.weights + at * 4)));
        return _mm256_madd_epi16(four_sums, weights);
    };
    for (; i + 8 <= c.width; i += 8) {
        const __m256i sum = _mm256_add_epi32(_mm256_hadd_epi32(four(i), four(i + 2)), round);
        const __m256i mean =
            _mm256_cvttps_epi32(_mm256_mul_ps(_mm256_add_ps(_mm256_cvtepi32_ps(sum), nudge), scale));
        const __m128i words =
            _mm_packs_epi32(_mm256_castsi256_si128(mean), _mm256_extracti128_si256(mean, 1));
        _mm_storel_epi64(reinterpret_cast<__m128i*>(out + i), _mm_packus_epi16(words, words));
    }
#elif defined(__SSE2__)
    const __m128 scale = _mm_set1_ps(c.scale), nudge = _mm_set1_ps(0.5f);
    const __m128i round = _mm_set1_epi32(half);
    // The four taps of two outputs, as sums of two.
    auto two = [&](int at) {
        const __m128i low = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(sums + c.first[at]));
        const __m128i high = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(sums + c.first[at + 1]));
        return _mm_madd_epi16(_mm_unpacklo_epi64(low, high),
                              _mm_loadu_si128(reinterpret_cast<const __m128i*>(c.weights + at * 4)));
    };
    for (; i + 4 <= c.width; i += 4) {
        const __m128 a = _mm_castsi128_ps(two(i)), b = _mm_castsi128_ps(two(i + 2));
        const __m128i sum = _mm_add_epi32(_mm_castps_si128(_mm_shuffle_ps(a, b, 0x88)),
                                          _mm_castps_si128(_mm_shuffle_ps(a, b, 0xDD)));
        const __m128 exact = _mm_add_ps(_mm_cvtepi32_ps(_mm_add_epi32(sum, round)), nudge);
        const __m128i words =
            _mm_packs_epi32(_mm_cvttps_epi32(_mm_mul_ps(exact, scale)), _mm_setzero_si128());
        const int packed = _mm_cvtsi128_si32(_mm_packus_epi16(words, words));
        std::memcpy(out + i, &packed, 4);
    }
#elif defined(__ARM_NEON)
    const float32x4_t nudge = vdupq_n_f32(0.5f);
    const float scale = c.scale;
    const uint32x4_t round = vdupq_n_u32(static_cast<u32>(half));
    auto one = [&](int at) { return vmull_u16(vld1_u16(sums + c.first[at]), vld1_u16(c.weights + at * 4)); };
    for (; i + 4 <= c.width; i += 4) {
        const uint32x4_t sum = vpaddq_u32(vpaddq_u32(one(i), one(i + 1)), vpaddq_u32(one(i + 2), one(i + 3)));
        const float32x4_t exact = vaddq_f32(vcvtq_f32_u32(vaddq_u32(sum, round)), nudge);
        const uint16x4_t words = vmovn_u32(vcvtq_u32_f32(vmulq_n_f32(exact, scale)));
        const uint8x8_t bytes = vmovn_u16(vcombine_u16(words, words));
        const u32 packed = vget_lane_u32(vreinterpret_u32_u8(bytes), 0);
        std::memcpy(out + i, &packed, 4);
    }
#endif
    for (; i < c.width; ++i) {
        const u16 *from = sums + c.first[i], *w = c.weights + i * 4;
        const int sum = half + from[0] * w[0] + from[1] * w[1] + from[2] * w[2] + from[3] * w[3];
        out[i] = static_cast<u8>(sum / c.divisor);
    }
}

#if defined(__ARM_FEATURE_DOTPROD)

/// Four outputs at a time, from lines to bytes without leaving the registers. Whole numbers below 2^23 become
/// floats, and floats are rounded to whole numbers, by adding 2^23.
void shrink_quads(const Lines& lines, const Columns& c, u8* out) {
    const u8 *const l0 = lines.at[0], *const l1 = lines.at[1], *const l2 = lines.at[2],
                    *const l3 = lines.at[3];
    const uint32x4_t none = vdupq_n_u32(0), big = vdupq_n_u32(0x4B000000);
    const float32x4_t big_float = vreinterpretq_f32_u32(big);
    const float divisor = static_cast<float>(c.divisor), half = static_cast<float>(c.divisor / 2);
    const float32x4_t scale = vdupq_n_f32(c.scale), nudge = vdupq_n_f32((half + 0.5f) / divisor - 0.5f);
    const u32 w0 = lines.weight[0], w1 = lines.weight[1], w2 = lines.weight[2], w3 = lines.weight[3];
    // Each of the four words has its mean in the lowest byte.
    auto means = [=](const Columns::Quad& q) {
        const uint8x16_t at = vld1q_u8(q.index), taps = vld1q_u8(q.weight);
        auto of = [&](const u8* line) {
            return vdotq_u32(none, vqtbl1q_u8(vld1q_u8(line + q.first), at), taps);
        };
        const uint32x4_t sum = vmlaq_n_u32(
            vmlaq_n_u32(vmlaq_n_u32(vmulq_n_u32(of(l0), w0), of(l1), w1), of(l2), w2), of(l3), w3);
        const float32x4_t exact = vsubq_f32(vreinterpretq_f32_u32(vorrq_u32(sum, big)), big_float);
        return vreinterpretq_u8_f32(vaddq_f32(vfmaq_f32(nudge, exact, scale), big_float));
    };
    const Columns::Quad *q = c.quads, *const end = q + c.width / 4;
    for (; end - q >= 4; q += 4, out += 16)
        vst1q_u8(out, vuzp1q_u8(vuzp1q_u8(means(q[0]), means(q[1])), vuzp1q_u8(means(q[2]), means(q[3]))));
    for (; q < end; ++q, out += 4) {
        const uint8x16_t two = vuzp1q_u8(means(*q), means(*q));
        const u32 packed = vgetq_lane_u32(vreinterpretq_u32_u8(vuzp1q_u8(two, two)), 0);
        std::memcpy(out, &packed, 4);
    }
}

#endif

void shrink(const Lines* rows, int count, const Columns& columns, u8* out) {
#if defined(__AVX512BW__)
    if (columns.lanes) return shrink_lanes(rows, count, columns, out);
#elif defined(__ARM_FEATURE_DOTPROD)
    if (columns.quads) {
        for (int r = 0; r < count; ++r) shrink_quads(rows[r], columns, out + r * columns.width);
        return;
    }
#endif
    alignas(64) u16 sums[Kernels::kWidth + 4];
    for (int i = 0; i < 4; ++i) sums[Kernels::kWidth + i] = 0;
    for (int r = 0; r < count; ++r, out += columns.width) {
        weigh_lines(rows[r], sums);
        weigh_columns(columns, sums, out);
    }
}

}  // namespace
}  // namespace wz::simd
