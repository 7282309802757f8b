#pragma once
// Included once for each instruction set, like kernels_impl.hpp: the words of native/pack/frame_codec.hpp.
#include <array>
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

constexpr std::size_t kWord = 8, kBlock = Kernels::kPackedBlock, kMostOfBlock = Kernels::kMostOfPackedBlock;

inline u64 load_word(const u8* from) {
    u64 word;
    std::memcpy(&word, from, kWord);
    return word;
}

/// The same where only `size` bytes are left, at most eight of them; the others are 0.
inline u64 load_word(const u8* from, std::size_t size) {
    if (size >= kWord) return load_word(from);
    u64 word = 0;
    std::memcpy(&word, from, size);
    return word;
}

inline void store_word(u8* to, std::size_t size, u64 word) {
    if (size >= kWord)
        std::memcpy(to, &word, kWord);
    else
        std::memcpy(to, &word, size);
}

/// For each set of bytes of a word, as bits.
struct ByteSets {
    using Table = std::array<std::array<u8, kWord>, 256>;
    Table of_set{};  ///< the bytes of the set, the lowest first
    Table
        merged{};  ///< where each byte comes from: k, or for the bytes of the set 8 and how many are below it
    std::array<u8, 256> count{};

    constexpr ByteSets() {
        for (unsigned set = 0; set < 256; ++set) {
            unsigned n = 0;
            for (unsigned k = 0; k < kWord; ++k) {
                merged[set][k] = static_cast<u8>(set >> k & 1 ? kWord + n : k);
                if (set >> k & 1) of_set[set][n++] = static_cast<u8>(k);
            }
            count[set] = static_cast<u8>(n);
        }
    }
};
constexpr ByteSets kSets;

/// Bit k: byte k is not 0.
inline unsigned not_zero(u64 x) {
    constexpr u64 kLow = 0x7f7f7f7f7f7f7f7f, kOnes = 0x0101010101010101;
    const u64 ones = ((((x & kLow) + kLow) | x) >> 7) & kOnes;
    return static_cast<unsigned>(ones * 0x0102040810204080 >> 56);
}

#if defined(__AVX512BW__)

/// Bit k: byte k of two blocks differs.
inline u64 differing(const u8* a, const u8* b) {
    return _mm512_cmpneq_epu8_mask(_mm512_loadu_si512(a), _mm512_loadu_si512(b));
}

#elif defined(__AVX2__)

inline u64 differing(const u8* a, const u8* b) {
    const auto load = [](const u8* from) {
        return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
    };
    const auto same = [&](int at) {
        return static_cast<u32>(_mm256_movemask_epi8(_mm256_cmpeq_epi8(load(a + at), load(b + at))));
    };
    return ~(same(0) | static_cast<u64>(same(32)) << 32);
}

#else

inline u64 differing(const u8* a, const u8* b) {
    u64 found = 0;
    for (std::size_t k = 0; k < kBlock; k += kWord)
        if (const u64 differs = load_word(a + k) ^ load_word(b + k)) found |= u64{not_zero(differs)} << k;
    return found;
}

#endif

#if defined(__AVX2__)

/// Writes the bytes of a set, and others behind them, eight in all.
inline void write_set(u64 word, unsigned set, u8* out) {
    const __m128i index = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(kSets.of_set[set].data()));
    _mm_storel_epi64(reinterpret_cast<__m128i*>(out),
                     _mm_shuffle_epi8(_mm_cvtsi64_si128(static_cast<long long>(word)), index));
}
/// The word with the bytes of a set replaced by those from `in` on, of which eight can be read.
inline u64 with_set(u64 word, unsigned set, const u8* in) {
    const __m128i index = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(kSets.merged[set].data()));
    const __m128i both = _mm_set_epi64x(static_cast<long long>(load_word(in)), static_cast<long long>(word));
    return static_cast<u64>(_mm_cvtsi128_si64(_mm_shuffle_epi8(both, index)));
}

#elif defined(__ARM_NEON)

inline void write_set(u64 word, unsigned set, u8* out) {
    vst1_u8(out, vtbl1_u8(vcreate_u8(word), vld1_u8(kSets.of_set[set].data())));
}
inline u64 with_set(u64 word, unsigned set, const u8* in) {
    const uint8x8x2_t both{{vcreate_u8(word), vld1_u8(in)}};
    return vget_lane_u64(vreinterpret_u64_u8(vtbl2_u8(both, vld1_u8(kSets.merged[set].data()))), 0);
}

#else

inline void write_set(u64 word, unsigned set, u8* out) {
    for (std::size_t k = 0; k < kWord; ++k) out[k] = static_cast<u8>(word >> 8 * kSets.of_set[set][k]);
}
inline u64 with_set(u64 word, unsigned set, const u8* in) {
    u8 both[2 * kWord], bytes[kWord];
    std::memcpy(both, &word, kWord);
    std::memcpy(both + kWord, in, kWord);
    for (std::size_t k = 0; k < kWord; ++k) bytes[k] = both[kSets.merged[set][k]];
    return load_word(bytes);
}

#endif

/// Which bytes of the block at `from` differ from those `distance` before them; the same as `differing`, also
/// where one of the blocks is not whole.
u64 differing_at_edge(const u8* in, std::size_t size, std::size_t from, std::size_t distance) {
    u64 found = 0;
    for (std::size_t at = from; at < from + kBlock && at < size; at += kWord) {
        const std::size_t here = size - at < kWord ? size - at : kWord;
        const u64 whole = here == kWord ? ~u64{0} : (u64{1} << 8 * here) - 1;
        const u64 before = at < distance ? 0 : load_word(in + at - distance);
        found |= u64{not_zero((load_word(in + at, size - at) ^ before) & whole)} << (at - from);
    }
    return found;
}

std::size_t pack_frame(const u8* in, std::size_t size, std::size_t row, std::size_t columns, u8* out) {
    const u8* const begin = out;
    const auto differs_from = [&](std::size_t from, std::size_t distance) {
        return from >= distance && size - from >= kBlock ? differing(in + from, in + from - distance)
                                                         : differing_at_edge(in, size, from, distance);
    };
    for (std::size_t from = 0; from < size; from += kBlock) {
        const u64 by_row = differs_from(from, row);
        unsigned across = 0, left = not_zero(by_row);
        *out++ = static_cast<u8>(left);
        if (!left) continue;
        const u64 by_columns = differs_from(from, columns);
        u8 *const which_across = out++, *sets = out;
        for (out += kSets.count[left]; left; left &= left - 1) {
            const auto k = static_cast<unsigned>(__builtin_ctz(left));
            const std::size_t at = from + k * kWord;
            const unsigned above = by_row >> 8 * k & 255, before = by_columns >> 8 * k & 255;
            const bool nearer = kSets.count[before] < kSets.count[above];
            const unsigned differs = nearer ? before : above;
            across |= static_cast<unsigned>(nearer) << k;
            *sets++ = static_cast<u8>(differs);
            write_set(load_word(in + at, size - at), differs, out);
            out += kSets.count[differs];
        }
        *which_across = static_cast<u8>(across);
    }
    return static_cast<std::size_t>(out - begin);
}

/// What lies `distance` before the word at `at`, put together from words as they were stored: a processor is
/// slow to read parts of two stores at once.
inline u64 stored_before(const u8* frame, std::size_t at, std::size_t distance) {
    if (at < distance) return 0;
    const std::size_t offset = (at - distance) % kWord;
    const u8* const from = frame + at - distance - offset;
    return offset ? load_word(from) >> 8 * offset | load_word(from + kWord) << (64 - 8 * offset)
                  : load_word(from);
}

bool unpack_frame(const u8* in, std::size_t in_size, std::size_t row, std::size_t columns, u8* out,
                  std::size_t out_size) {
    const u8* const in_end = in + in_size;
    u8 last[kMostOfBlock + kWord];  // what is left of the input, with zeros behind it
    for (std::size_t from = 0; from < out_size; from += kBlock) {
        const std::size_t end = from + kBlock < out_size ? from + kBlock : out_size;
        const auto left = static_cast<std::size_t>(in_end - in);
        const u8* block = in;
        if (left < sizeof last) {
            if (!left) return false;
            std::memset(last, 0, sizeof last);
            std::memcpy(last, in, left);
            block = last;
        }
        const u8* next = block;
        const unsigned changed = *next++;
        if (!changed && end - from == kBlock && from >= row && row >= kBlock) {
            std::memcpy(out + from, out + from - row, kBlock);
        } else {
            const unsigned across = changed ? *next++ : 0;
            // The set of each word, none where it is not changed.
            u64 sets = with_set(0, changed, next);
            next += kSets.count[changed];
            for (std::size_t at = from, k = 0; at < end; at += kWord, ++k, sets >>= 8) {
                const unsigned differs = sets & 255;
                const u64 word =
                    with_set(stored_before(out, at, across >> k & 1 ? columns : row), differs, next);
                next += kSets.count[differs];
                store_word(out + at, out_size - at, word);
            }
        }
        const auto used = static_cast<std::size_t>(next - block);
        if (used > left) return false;
        in += used;
    }
    return in == in_end;
}

}  // namespace
}  // namespace wz::simd
