#pragma once
#include "nes/ppu.hpp"
#if defined(__SSE2__)
#include <emmintrin.h>
#elif defined(__ARM_NEON)
#include <arm_neon.h>
#endif

namespace wz::ppu {

inline constexpr i64 kVisibleDots = i64{Frame::kHeight} * kDotsPerLine;

struct Sprite {
    int top, height, x;
    u8 tile, attributes;
};
inline Sprite sprite_at(const Ppu& p, int index) {
    const u8* o = p.oam + index * 4;
    return {o[0] + 1, (p.ctrl & kTallSprites) ? 16 : 8, o[3], o[1], o[2]};
}
/// Which of the 512 tiles is the sprite's first; a tall sprite has the next one, too.
inline int sprite_tile(const Ppu& p, const Sprite& s) {
    if (s.height == 16) return ((s.tile & 1) << 8) + (s.tile & 0xFE);
    return ((p.ctrl & kSpriteTable) ? 256 : 0) + s.tile;
}
/// Which tile, and which row of it, shows on the sprite's `row`th line.
inline int sprite_tile(const Ppu& p, const Sprite& s, int row, int& tile_line) {
    if (s.attributes & 0x80) row = s.height - 1 - row;
    tile_line = row & 7;
    return sprite_tile(p, s) + (row >> 3);
}

/// The line byte of every sprite: it begins on the line below.
struct SpriteLines {
    static constexpr int kCount = 64, kLanes = 16, kVectors = kCount / kLanes;
    using Vector = u8 __attribute__((vector_size(kLanes)));
    Vector line[kVectors];
    explicit SpriteLines(const u8* oam) {
        // Every fourth byte.
#if defined(__SSE2__)
        auto four = [oam](int i) {
            const auto* from = reinterpret_cast<const __m128i*>(oam) + i;
            return _mm_and_si128(_mm_loadu_si128(from), _mm_set1_epi32(0xFF));
        };
        auto eight = [&](int i) { return _mm_packs_epi32(four(i), four(i + 1)); };
        for (int k = 0; k < kVectors; ++k) line[k] = (Vector)_mm_packus_epi16(eight(4 * k), eight(4 * k + 2));
#elif defined(__ARM_NEON)
        for (int k = 0; k < kVectors; ++k) line[k] = (Vector)vld4q_u8(oam + 4 * kLanes * k).val[0];
#else
        for (int i = 0; i < kCount; ++i) line[i / kLanes][i % kLanes] = oam[4 * i];
#endif
    }
    static Vector all(int value) {
        Vector v;
        std::memset(&v, value, sizeof v);
        return v;
    }
    /// A bit for each byte of a comparison's result.
    template <class Found>
    static u64 each(Found found) {
#if defined(__SSE2__)
        return static_cast<u64>(_mm_movemask_epi8((__m128i)found));
#else
        const Vector ones = (Vector)found & all(1);
        u8 bytes[kLanes];
        std::memcpy(bytes, &ones, sizeof bytes);
        // The multiplication gathers the lowest bits of eight bytes in the highest byte.
        auto eight = [&](int i) { return load64(bytes + i) * 0x0102040810204080ull >> 56; };
        return eight(0) | eight(8) << 8;
#endif
    }
    /// Bit i is set where sprite i's is one of the `count` (at most 255) from `low` on.
    u64 among(int low, int count) const {
        u64 bits = 0;
        for (int k = 0; k < kVectors; ++k) bits |= each(line[k] - all(low) < all(count)) << kLanes * k;
        return bits;
    }
    /// Whether eight sprites of that height meet on a line of the picture.
    bool crowded(int height) const {
        u64 visible = among(0, Frame::kHeight);
        if (__builtin_popcountll(visible) < 8) return false;
        // How many each of them meets on its own first line. Those below the picture meet none.
        Vector at[kVectors], met[kVectors] = {};
        for (int k = 0; k < kVectors; ++k) at[k] = line[k] | (Vector)(line[k] >= all(Frame::kHeight));
        for (; visible; visible &= visible - 1) {
            const int i = __builtin_ctzll(visible);
            const Vector top = all(reinterpret_cast<const u8*>(line)[i]);
            for (int k = 0; k < kVectors; ++k) met[k] -= (Vector)(at[k] - top < all(height));
        }
        Vector many = {};
        for (const Vector& m : met) many |= (Vector)(m >= all(8));
        u64 any[2];
        std::memcpy(any, &many, sizeof any);
        return any[0] | any[1];
    }
};

}  // namespace wz::ppu
