#include <algorithm>

#include "nes/ppu_address.hpp"
#include "nes/ppu_sprites.hpp"

namespace wz::ppu {
namespace {

inline u8 reversed(u8 b) { return static_cast<u8>((b * 0x0202020202ull & 0x010884422010ull) % 1023); }

i64 forecast_sprite_zero(Ppu& p, const Cartridge& c, int line, int dot) {
    if ((p.mask & kRendering) != kRendering) return kNever;
    const Sprite s = sprite_at(p, 0);
    const int bottom = std::min(s.top + s.height, Frame::kHeight);
    if (line >= bottom) return kNever;

    int unplayed = 0;  // lines before this one are played already
    if (p.pipeline_live || (dot > 0 && dot <= 256 && line >= s.top)) {
        // What does not follow from v alone: play it on a copy of the little that it changes.
        const u16 keep[6] = {p.v, p.shift_lo, p.shift_hi, p.shift_attr_lo, p.shift_attr_hi, p.pipeline_live};
        i64 hit = run_dots(p, c, nullptr, line, dot, kDotsPerLine);
        if (hit == kNever && keep[5] && line + 1 < Frame::kHeight) {
            hit = run_dots(p, c, nullptr, line + 1, 0, 257);
            unplayed = line + 2;
        }
        p.v = keep[0], p.shift_lo = keep[1], p.shift_hi = keep[2];
        p.shift_attr_lo = keep[3], p.shift_attr_hi = keep[4], p.pipeline_live = static_cast<u8>(keep[5]);
        if (hit != kNever) return hit;
    }
    // v at the first pixel of line `y`, walking down from here.
    u16 v;
    int y;
    if (dot == 0) {
        v = previous_column(previous_column(p.v));
        y = line;
    } else {
        v = dot > 256 ? p.v : next_row(p.v);
        if (dot <= 257) v = take(v, p.t, kHorizontal);
        for (int passed : {328, 336})
            if (dot > passed) v = previous_column(v);
        y = line + 1;
    }
    int visible = 0xFF;  // pixels of the sprite that can hit, leftmost in bit 7
    if (s.x < 8 && (p.mask & (kLeftBackground | kLeftSprites)) != (kLeftBackground | kLeftSprites))
        visible = 0xFF >> (8 - s.x);
    if (s.x > 247) visible &= 0xFF << (s.x - 247);
    const u8* patterns = pattern_bytes(p, c);
    if (const int above = std::max(s.top, unplayed) - y; above > 0) {
        v = take(rows_down(v, above), p.t, kHorizontal);
        y += above;
    }
    for (; y < bottom; ++y) {
        int row;
        const u8* shape = patterns + sprite_tile(p, s, y - s.top, row) * 16;
        u8 sprite = shape[row] | shape[row + 8];
        if (s.attributes & 0x40) sprite = reversed(sprite);
        if (sprite & visible) {
            const int offset = s.x + p.fine_x;
            const TileRow a = fetch_tile(p, c, columns_right(v, offset >> 3));
            const TileRow b = fetch_tile(p, c, columns_right(v, (offset >> 3) + 1));
            const int under = ((a.lo | a.hi) << 8 | b.lo | b.hi) >> (8 - (offset & 7));
            const int hit = sprite & visible & under & 0xFF;
            if (hit)
                return p.origin + i64{y} * kDotsPerLine + s.x + 1 +
                       (__builtin_clz(static_cast<u32>(hit)) - 24);
        }
        v = take(next_row(v), p.t, kHorizontal);
    }
    return kNever;
}

/// The dot at which evaluating sprites on `line` sets the overflow flag, or kNever. After eight sprites the
/// hardware forgets to reset the byte it compares, so it looks at tiles and positions as if they were lines.
i64 overflow_on_line(const Ppu& p, int line) {
    const int height = (p.ctrl & kTallSprites) ? 16 : 8;
    auto covers = [line, height](u8 top) { return line >= top && line < top + height; };
    int found = 0, dot = 66, i = 0;
    for (; i < 64 && found < 8; ++i) {
        if (covers(p.oam[i * 4])) {
            ++found;
            dot += 8;
        } else {
            dot += 2;
        }
    }
    for (int byte = 0; i < 64; ++i, byte = (byte + 1) & 3, dot += 2)
        if (covers(p.oam[i * 4 + byte])) return p.origin + i64{line} * kDotsPerLine + dot;
    return kNever;
}

i64 forecast_overflow(const Ppu& p, int line) {
    const int height = (p.ctrl & kTallSprites) ? 16 : 8;
    if (!SpriteLines(p.oam).crowded(height)) return kNever;
    i8 change[272] = {};
    int top = Frame::kHeight, bottom = 0;
    for (int i = 0; i < 64; ++i) {
        const int y = p.oam[i * 4];
        if (y >= Frame::kHeight) continue;
        ++change[y];
        --change[y + height];
        top = std::min(top, y);
        bottom = std::max(bottom, y + height);
    }
    int on_line = 0;
    for (int y = top; y < std::min(bottom, Frame::kHeight); ++y) {
        on_line += change[y];
        if (on_line < 8 || y < line) continue;
        const i64 dot = overflow_on_line(p, y);
        if (dot != kNever && dot >= p.done) return dot;
    }
    return kNever;
}

}  // namespace

void forecast(Ppu& p, const Cartridge& c) {
    const u8 known = p.forecast_valid;
    p.forecast_valid = kForecastBoth;
    const i64 at = p.done - p.origin;
    if (!rendering(p) || at >= kVisibleDots) return;
    const int line = static_cast<int>(at / kDotsPerLine), dot = static_cast<int>(at % kDotsPerLine);
    if (!(known & kForecastSpriteZero) && p.sprite_zero_dot == kNever)
        p.sprite_zero_dot = forecast_sprite_zero(p, c, line, dot);
    if (!(known & kForecastOverflow) && p.overflow_dot == kNever) p.overflow_dot = forecast_overflow(p, line);
}

}  // namespace wz::ppu
