#pragma once
// Included once for each instruction set, as kernels_impl.hpp is.
#include "simd/kernels_impl.hpp"

namespace wz::simd {
namespace {

#if defined(__AVX512BW__) && defined(__AVX512VL__)

/// The 32 colours in registers, for a look-up of 16 pixels at once.
class Pen {
  public:
    explicit Pen(const Colours& c)
        : low_(_mm512_load_si512(c.words)), high_(_mm512_load_si512(c.words + 16)) {}

    void rgb_line(const u8* slots, u8* out) const {
        // Four times 48 bytes, in quarters of 12 and 4 of nothing, move together into three times 64.
        const __m512i first = _mm512_setr_epi32(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, 16, 17, 18, 20);
        const __m512i second = _mm512_setr_epi32(5, 6, 8, 9, 10, 12, 13, 14, 16, 17, 18, 20, 21, 22, 24, 25);
        const __m512i third =
            _mm512_setr_epi32(10, 12, 13, 14, 16, 17, 18, 20, 21, 22, 24, 25, 26, 28, 29, 30);
        for (int x = 0; x < Kernels::kWidth; x += 64, out += 192) {
            const __m512i a = triples(slots + x), b = triples(slots + x + 16), c = triples(slots + x + 32),
                          d = triples(slots + x + 48);
            _mm512_storeu_si512(out, _mm512_permutex2var_epi32(a, first, b));
            _mm512_storeu_si512(out + 64, _mm512_permutex2var_epi32(b, second, c));
            _mm512_storeu_si512(out + 128, _mm512_permutex2var_epi32(c, third, d));
        }
    }

    void span(const u8* slots, int from, int to, bool rgb, u8* out) const {
        const __m512i close = _mm512_setr_epi32(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, 0, 0, 0, 0);
        for (int x = from; x < to; x += 16) {
            const int n = to - x < 16 ? to - x : 16;
            if (rgb)
                _mm512_mask_storeu_epi8(out + x * 3, (u64{1} << 3 * n) - 1,
                                        _mm512_permutexvar_epi32(close, triples(slots + x)));
            else
                _mm512_mask_storeu_epi32(out + x * 4, static_cast<__mmask16>((1u << n) - 1),
                                         words(slots + x));
        }
    }

  private:
    __m512i words(const u8* slots) const {
        const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(slots));
        return _mm512_permutex2var_epi32(low_, _mm512_cvtepu8_epi32(bytes), high_);  // by the low five bits
    }
    /// Each quarter drops the byte above its words and turns them round.
    __m512i triples(const u8* slots) const {
        return _mm512_shuffle_epi8(
            words(slots),
            _mm512_broadcast_i32x4(_mm_setr_epi8(2, 1, 0, 6, 5, 4, 10, 9, 8, 14, 13, 12, -1, -1, -1, -1)));
    }
    __m512i low_, high_;
};

void paint(const Colours& colours, const u8* slots, int from, int to, bool rgb, u8* row) {
    const Pen pen(colours);
    if (rgb && from == 0 && to == Kernels::kWidth)
        pen.rgb_line(slots, row);
    else
        pen.span(slots, from, to, rgb, row);
}

#else

void paint(const Colours& c, const u8* slots, int from, int to, bool rgb, u8* row) {
    int x = from;
    if (rgb) {
        u8* out = row + from * 3;
#if defined(__AVX2__)
        // Three planes of 16 become 48 interleaved bytes; -1 leaves a byte to the other planes.
        alignas(16) static constexpr i8 kPlace[3][3][16] = {
            {{0, -1, -1, 1, -1, -1, 2, -1, -1, 3, -1, -1, 4, -1, -1, 5},
             {-1, 0, -1, -1, 1, -1, -1, 2, -1, -1, 3, -1, -1, 4, -1, -1},
             {-1, -1, 0, -1, -1, 1, -1, -1, 2, -1, -1, 3, -1, -1, 4, -1}},
            {{-1, -1, 6, -1, -1, 7, -1, -1, 8, -1, -1, 9, -1, -1, 10, -1},
             {5, -1, -1, 6, -1, -1, 7, -1, -1, 8, -1, -1, 9, -1, -1, 10},
             {-1, 5, -1, -1, 6, -1, -1, 7, -1, -1, 8, -1, -1, 9, -1, -1}},
            {{-1, 11, -1, -1, 12, -1, -1, 13, -1, -1, 14, -1, -1, 15, -1, -1},
             {-1, -1, 11, -1, -1, 12, -1, -1, 13, -1, -1, 14, -1, -1, 15, -1},
             {10, -1, -1, 11, -1, -1, 12, -1, -1, 13, -1, -1, 14, -1, -1, 15}}};
        for (; x + 16 <= to; x += 16, out += 48) {
            const __m128i slot = _mm_loadu_si128(reinterpret_cast<const __m128i*>(slots + x));
            const __m128i low = _mm_and_si128(slot, _mm_set1_epi8(15)), high = _mm_slli_epi16(slot, 3);
            __m128i plane[3];
            const u8* const tables[3] = {c.red, c.green, c.blue};
            for (int k = 0; k < 3; ++k) {
                const __m128i* t = reinterpret_cast<const __m128i*>(tables[k]);
                plane[k] = _mm_blendv_epi8(_mm_shuffle_epi8(t[0], low), _mm_shuffle_epi8(t[1], low), high);
            }
            for (int part = 0; part < 3; ++part) {
                __m128i v = _mm_setzero_si128();
                for (int k = 0; k < 3; ++k)
                    v = _mm_or_si128(
                        v, _mm_shuffle_epi8(plane[k], *reinterpret_cast<const __m128i*>(kPlace[part][k])));
                _mm_storeu_si128(reinterpret_cast<__m128i*>(out + 16 * part), v);
            }
        }
#elif defined(__ARM_NEON)
        const uint8x16x2_t red = {vld1q_u8(c.red), vld1q_u8(c.red + 16)};
        const uint8x16x2_t green = {vld1q_u8(c.green), vld1q_u8(c.green + 16)};
        const uint8x16x2_t blue = {vld1q_u8(c.blue), vld1q_u8(c.blue + 16)};
        for (; x + 16 <= to; x += 16, out += 48) {
            const uint8x16_t slot = vandq_u8(vld1q_u8(slots + x), vdupq_n_u8(31));
            // Named, as vst3q_u8 is a macro for Clang, where commas in braces part arguments.
            const uint8x16x3_t pixels = {vqtbl2q_u8(red, slot), vqtbl2q_u8(green, slot),
                                         vqtbl2q_u8(blue, slot)};
            vst3q_u8(out, pixels);
        }
#endif
        // A word each: its fourth byte is the next pixel's first, so the last pixel of a span takes three.
        for (; x < to; ++x, out += 3) {
            const u32 word = __builtin_bswap32(c.words[slots[x] & 31]) >> 8;
            std::memcpy(out, &word, x + 1 < to ? 4 : 3);
        }
        return;
    }
    u8* out = row + from * 4;
#if defined(__AVX2__)
    for (; x + 32 <= to; x += 32, out += 128) {
        const __m256i slot = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(slots + x));
        const __m256i low = _mm256_and_si256(slot, _mm256_set1_epi8(15)), high = _mm256_slli_epi16(slot, 3);
        __m256i plane[3];
        const u8* const tables[3] = {c.blue, c.green, c.red};
        for (int k = 0; k < 3; ++k) {
            const __m128i* t = reinterpret_cast<const __m128i*>(tables[k]);
            plane[k] = _mm256_blendv_epi8(_mm256_shuffle_epi8(_mm256_broadcastsi128_si256(t[0]), low),
                                          _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(t[1]), low), high);
        }
        const __m256i zero = _mm256_setzero_si256();
        const __m256i bg_low = _mm256_unpacklo_epi8(plane[0], plane[1]),
                      bg_high = _mm256_unpackhi_epi8(plane[0], plane[1]);
        const __m256i r_low = _mm256_unpacklo_epi8(plane[2], zero),
                      r_high = _mm256_unpackhi_epi8(plane[2], zero);
        const __m256i q0 = _mm256_unpacklo_epi16(bg_low, r_low), q1 = _mm256_unpackhi_epi16(bg_low, r_low);
        const __m256i q2 = _mm256_unpacklo_epi16(bg_high, r_high),
                      q3 = _mm256_unpackhi_epi16(bg_high, r_high);
        __m256i* to256 = reinterpret_cast<__m256i*>(out);
        _mm256_storeu_si256(to256, _mm256_permute2x128_si256(q0, q1, 0x20));
        _mm256_storeu_si256(to256 + 1, _mm256_permute2x128_si256(q2, q3, 0x20));
        _mm256_storeu_si256(to256 + 2, _mm256_permute2x128_si256(q0, q1, 0x31));
        _mm256_storeu_si256(to256 + 3, _mm256_permute2x128_si256(q2, q3, 0x31));
    }
#elif defined(__ARM_NEON)
    const uint8x16x2_t red = {vld1q_u8(c.red), vld1q_u8(c.red + 16)};
    const uint8x16x2_t green = {vld1q_u8(c.green), vld1q_u8(c.green + 16)};
    const uint8x16x2_t blue = {vld1q_u8(c.blue), vld1q_u8(c.blue + 16)};
    for (; x + 16 <= to; x += 16, out += 64) {
        const uint8x16_t slot = vandq_u8(vld1q_u8(slots + x), vdupq_n_u8(31));
        const uint8x16x4_t pixels = {vqtbl2q_u8(blue, slot), vqtbl2q_u8(green, slot), vqtbl2q_u8(red, slot),
                                     vdupq_n_u8(0)};
        vst4q_u8(out, pixels);
    }
#endif
    for (; x < to; ++x, out += 4) std::memcpy(out, &c.words[slots[x] & 31], 4);
}

#endif

void paint_background(const Colours& c, const u8* slots, int stride, int from, int to, int rows, u8* out) {
#if defined(__ARM_NEON)
    // Look-ups in one register take a fraction of the time of those in two.
    const uint8x16_t red = vld1q_u8(c.red), green = vld1q_u8(c.green), blue = vld1q_u8(c.blue);
    for (int r = 0; r < rows; ++r, slots += stride, out += 3 * Kernels::kWidth)
        for (int x = from; x < to; x += 16) {
            const uint8x16_t slot = vld1q_u8(slots + x);
            const uint8x16x3_t pixels = {vqtbl1q_u8(red, slot), vqtbl1q_u8(green, slot),
                                         vqtbl1q_u8(blue, slot)};
            vst3q_u8(out + x * 3, pixels);
        }
#else
    for (int r = 0; r < rows; ++r, slots += stride, out += 3 * Kernels::kWidth)
        paint(c, slots, from, to, true, out);
#endif
}

}  // namespace
}  // namespace wz::simd
