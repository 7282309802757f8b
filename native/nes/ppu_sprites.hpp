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

}  // namespace wz::ppu
