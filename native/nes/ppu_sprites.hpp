#pragma once
#include "nes/ppu.hpp"

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
/// Which of the 512 tiles, and which row of it, shows on the sprite's `row`th line.
inline int sprite_tile(const Ppu& p, const Sprite& s, int row, int& tile_line) {
    if (s.attributes & 0x80) row = s.height - 1 - row;
    tile_line = row & 7;
    if (s.height == 16) return ((s.tile & 1) << 8) + (s.tile & 0xFE) + (row >> 3);
    return ((p.ctrl & kSpriteTable) ? 256 : 0) + s.tile;
}

/// The line byte of every sprite: it begins on the line below.
struct SpriteLines {
    static constexpr int kCount = 64, kLanes = 16, kVectors = kCount / kLanes;
    using Vector = u8 __attribute__((vector_size(kLanes)));
    Vector line[kVectors];
    explicit SpriteLines(const u8* oam) {
        alignas(kLanes) u8 each[kCount];
        for (int i = 0; i < kCount; ++i) each[i] = oam[4 * i];
        std::memcpy(line, each, sizeof line);
    }
    static Vector all(int value) {
        Vector v;
        std::memset(&v, value, sizeof v);
        return v;
    }
    /// Bit i is set where sprite i's is one of the `count` (at most 255) from `low` on.
    u64 among(int low, int count) const {
        u8 found[kCount];
        for (int k = 0; k < kVectors; ++k) {
            const Vector is = (Vector)(line[k] - all(low) < all(count)) & all(1);
            std::memcpy(found + k * kLanes, &is, kLanes);
        }
        u64 bits = 0;
        // The multiplication gathers the lowest bits of eight bytes in the highest byte.
        for (int i = 0; i < kCount; i += 8) bits |= load64(found + i) * 0x0102040810204080ull >> 56 << i;
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
