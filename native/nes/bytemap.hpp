#pragma once
#include "nes/types.hpp"
#if defined(__AVX512VBMI__) || defined(__SSSE3__)
#include <immintrin.h>
#elif defined(__ARM_NEON)
#include <arm_neon.h>
#endif

namespace wz {

/// out[i] = table[in[i] & 63]. `count` is a multiple of 64; `in` and `out` may be the same.
inline void map_bytes(const u8* in, u8* out, int count, const u8 (&table)[64]) {
#if defined(__AVX512VBMI__)
    const __m512i t = _mm512_loadu_si512(table);
    for (int i = 0; i < count; i += 64)
        _mm512_storeu_si512(out + i, _mm512_permutexvar_epi8(_mm512_loadu_si512(in + i), t));
#elif defined(__ARM_NEON)
    const uint8x16x4_t t = {vld1q_u8(table), vld1q_u8(table + 16), vld1q_u8(table + 32),
                            vld1q_u8(table + 48)};
    for (int i = 0; i < count; i += 16)
        vst1q_u8(out + i, vqtbl4q_u8(t, vandq_u8(vld1q_u8(in + i), vdupq_n_u8(63))));
#elif defined(__AVX2__)
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
#else
    for (int i = 0; i < count; ++i) out[i] = table[in[i] & 63];
#endif
}

}  // namespace wz
