#include "nes/ppu_draw.hpp"

#include <algorithm>

#include "nes/ppu_address.hpp"
#include "nes/ppu_tiles.hpp"
#include "simd/kernels.hpp"

namespace wz::ppu {
namespace {

/// 0xFF in every byte whose pixel (low two bits) is not transparent.
inline u64 opaque_bytes(u64 pixels) { return ((pixels | pixels >> 1) & splat(1)) * 0xFF; }

inline u8 encoded(const Ppu& p, const Frame& out, u8 colour) {
    return out.encoding ? out.encoding[(p.mask >> 5) * 64 + colour] : colour;
}

/// The top `rows` lines of `pairs` pairs of tiles from `start` on.
void draw_tiles(const Ppu& p, const Cartridge& c, const u8* values, u16 start, int pairs, int rows, u8* line,
                int stride) {
    const int fine_y = start >> 12, table = (p.ctrl & kBackgroundTable) ? 256 : 0;
    TilesOnLine on_line(p.vram + c.nametable[(start >> 10) & 3],
                        p.vram + c.nametable[((start >> 10) & 3) ^ 1], start);
    u8* const names = on_line.names();
    alignas(8) u8 decoded[2 * TilesOnLine::kPairs][64];  // of a cartridge whose patterns may change
    const u8* tiles = c.tiles.data() + table * 64 + fine_y * 8;
    if (__builtin_expect(c.chr_is_ram, 0)) {
        for (int i = 0; i < 2 * pairs; ++i) {
            for (int r = 0; r < rows; ++r)
                store64(decoded[i] + r * 8, tile_row(p, c, table + names[i], fine_y + r));
            names[i] = static_cast<u8>(i);
        }
        tiles = decoded[0];
    }
    simd::kernels().draw_tiles({tiles, names, on_line.slots(), on_line.odd(), values}, pairs, rows,
                               line - p.fine_x, stride);
}

/// Eight pixels of the background from column x on, as palette slots 0..15. `start` is the address of the
/// line's first tile.
u64 background_slots(const Ppu& p, const Cartridge& c, u16 start, int x) {
    if (!(p.mask & kShowBackground)) return 0;
    const int table = (p.ctrl & kBackgroundTable) ? 256 : 0, offset = x + p.fine_x, shift = 8 * (offset & 7);
    auto slots = [&](int column) {
        const u16 v = columns_right(start, column);
        const u64 pixels = tile_row(p, c, table + nametable_byte(p, c, v), v >> 12);
        return pixels | splat(static_cast<u8>(fetch_tile(p, c, v).attribute << 2));
    };
    u64 found = slots(offset >> 3) >> shift;
    if (shift) found |= slots((offset >> 3) + 1) << (64 - shift);
    if (!(p.mask & kLeftBackground) && x < 8) found &= x == 0 ? 0 : ~0ull << 8 * (8 - x);
    return found;
}

/// Lines [from, to) of a sprite, the first of them at `at`, over what is there. Sprites are drawn last to
/// first: the first opaque one has the pixel, even where it then hides behind the background. `start` is the
/// address of the first tile on the line of `from`.
template <bool kPatternsMayChange, bool kBehind>
void draw_sprite_lines(const Ppu& p, const Cartridge& c, const u8* values, const Sprite& s, int from, int to,
                       u32 shown_lines, u16 start, u8* at, int stride) {
    const u8* palette = values + (16 | (s.attributes & 3) << 2);
    const u64 by_low = splat(palette[1]), by_high = splat(palette[2]),
              by_both = splat(palette[1] ^ palette[2] ^ palette[3]);
    const u64 cut = (p.mask & kLeftSprites) || s.x >= 8 ? ~0ull : s.x == 0 ? 0 : ~0ull << 8 * (8 - s.x);
    const bool mirrored = s.attributes & 0x40, upside_down = s.attributes & 0x80;
    // The lines of a tall sprite's two tiles follow each other.
    const int tile = sprite_tile(p, s), step = upside_down ? -1 : 1;
    int row = upside_down ? s.height - 1 - from : from;
    for (int line = from; line < to; ++line, row += step, at += stride) {
        if (!(shown_lines >> line & 1)) continue;
        u64 pixels = kPatternsMayChange ? tile_row(p, c, tile + (row >> 3), row & 7)
                                        : load64(c.tiles.data() + tile * 64 + row * 8);
        if (mirrored) pixels = __builtin_bswap64(pixels);
        const u64 low = (pixels & splat(1)) * 0xFF, high = (pixels >> 1 & splat(1)) * 0xFF;
        const u64 opaque = (low | high) & cut;
        u64 shown = (low & by_low) ^ (high & by_high) ^ (low & high & by_both);
        if (kBehind && opaque) {
            const u64 slots = background_slots(p, c, static_cast<u16>(start + ((line - from) << 12)), s.x),
                      over = opaque_bytes(slots);
            u8 in_front[8];
            for (int i = 0; i < 8; ++i) in_front[i] = values[slots >> 8 * i & 15];
            shown = (shown & ~over) | (load64(in_front) & over);
        }
        store64(at, (load64(at) & ~opaque) | (shown & opaque));
    }
}

/// The sprites that show in lines [first, last), in OAM order, with a bit for each of their lines that does:
/// the first eight show on a line.
struct VisibleSprites {
    int count = 0;
    Sprite sprite[64];
    u32 lines[64];
    u64 in_band[Frame::kHeight / 8 + 1] = {};  ///< which of them are in each eight lines

    VisibleSprites(const Ppu& p, int first, int last) {
        if (!(p.mask & kShowSprites)) return;
        const int height = (p.ctrl & kTallSprites) ? 16 : 8, low = std::max(first - height, 0);
        u64 found = SpriteLines(p.oam).among(low, last - 1 - low);
        const bool crowd = __builtin_popcountll(found) > 8;
        u8 shown[Frame::kHeight];
        if (crowd) std::memset(shown + first, 0, static_cast<std::size_t>(last - first));
        for (; found; found &= found - 1) {
            const Sprite s = sprite_at(p, __builtin_ctzll(found));
            const int from = std::max(s.top, first), to = std::min(s.top + s.height, last);
            u32 bits = (1u << (to - s.top)) - (1u << (from - s.top));
            for (int y = from; crowd && y < to; ++y)
                if (shown[y]++ >= 8) bits &= ~(1u << (y - s.top));
            if (!bits) continue;
            for (int band = from / 8; band <= (to - 1) / 8; ++band) in_band[band] |= 1ull << count;
            sprite[count] = s;
            lines[count++] = bits;
        }
    }
};

/// Draws them where they are in lines [first, last), at most eight. `start` is the address of line `first`'s
/// first tile.
void draw_sprites(const Ppu& p, const Cartridge& c, const u8* values, const VisibleSprites& visible,
                  int first, int last, u16 start, u8* line, int stride) {
    using Draw = decltype(draw_sprite_lines<false, false>)*;
    static constexpr Draw kDraw[2][2] = {
        {draw_sprite_lines<false, false>, draw_sprite_lines<false, true>},
        {draw_sprite_lines<true, false>, draw_sprite_lines<true, true>},
    };
    u64 here = visible.in_band[first / 8] | visible.in_band[(last - 1) / 8];
    while (here) {
        const int i = 63 - __builtin_clzll(here);
        here ^= 1ull << i;
        const Sprite& s = visible.sprite[i];
        const int from = std::max(s.top, first), to = std::min(s.top + s.height, last);
        if (from >= to) continue;
        const Draw draw = kDraw[c.chr_is_ram][s.attributes >> 5 & 1];
        draw(p, c, values, s, from - s.top, to - s.top, visible.lines[i],
             static_cast<u16>(start + ((from - first) << 12)), line + (from - first) * stride + s.x, stride);
    }
}

}  // namespace

const u8* output_values(const Ppu& p, Frame& out) {
    Frame::Values& v = out.values;
    if (v.mask == p.mask && v.encoding == out.encoding &&
        !std::memcmp(v.palette, p.palette, sizeof v.palette))
        return v.of;
    v.mask = p.mask;
    v.encoding = out.encoding;
    std::memcpy(v.palette, p.palette, sizeof v.palette);
    const u8 keep = (p.mask & 1) ? 0x30 : 0x3F;
    for (int i = 0; i < 32; ++i) v.of[i] = encoded(p, out, p.palette[(i & 3) ? i : 0] & keep);
    return v.of;
}

void fill_backdrop(const Ppu& p, Frame& out, i64 from, i64 to) {
    // With rendering off and v inside the palette, the output stage shows the entry v points at.
    const int at = (p.v & 0x3F00) != 0x3F00 ? 0 : (p.v & 3) ? p.v & 0x1F : p.v & 0x0F;
    const u8 value = encoded(p, out, p.palette[at] & ((p.mask & 1) ? 0x30 : 0x3F));
    while (from < to) {
        const int y = static_cast<int>(from / kDotsPerLine), dot = static_cast<int>(from % kDotsPerLine);
        const int end = static_cast<int>(std::min<i64>(kDotsPerLine, dot + (to - from)));
        const int left = std::clamp(dot - 1, 0, 256), right = std::clamp(end - 1, 0, 256);
        std::memset(out.line(y) + left, value, static_cast<std::size_t>(right - left));
        out.emphasis[y] = p.mask >> 5;
        if (right == 256) out.complete(y + 1);
        from += end - dot;
    }
}

void draw_lines(Ppu& p, const Cartridge& c, Frame& out, int first, int count) {
    const u8* values = output_values(p, out);
    const int last = first + count;
    const VisibleSprites sprites(p, first, last);
    std::memset(out.emphasis + first, p.mask >> 5, static_cast<std::size_t>(count));
    u16 start = columns_right(p.v, -2);
    // Lines of one row of tiles at a time. The first was fetched with the old column where t has changed
    // since.
    for (int y = first; y < last;) {
        int rows = (start ^ p.t) & kHorizontal ? 1 : std::min(8 - (start >> 12), last - y);
        if (out.reader) rows = std::min(rows, Frame::kNewest - y % Frame::kNewest);
        u8* line = out.line(y);
        if (p.mask & kShowBackground) {
            draw_tiles(p, c, values, start, TilesOnLine::kPairs, rows, line, Frame::kStride);
            if (!(p.mask & kLeftBackground))
                for (int r = 0; r < rows; ++r) store64(line + r * Frame::kStride, splat(values[0]));
        } else {
            for (int r = 0; r < rows; ++r) std::memset(line + r * Frame::kStride, values[0], Frame::kWidth);
        }
        draw_sprites(p, c, values, sprites, y, y + rows, start, line, Frame::kStride);
        start = take(rows_down(start, rows), p.t, kHorizontal);
        y += rows;
        out.complete(y);
    }
    p.v = columns_right(start, 2);
}

void draw_span(const Ppu& p, const Cartridge& c, Frame& out, int y, u16 start, int left, int right) {
    alignas(64) u8 buffer[Frame::kStride + Frame::kMargin];
    u8* line = buffer + Frame::kMargin;
    const u8* values = output_values(p, out);
    if (p.mask & kShowBackground) {
        const int from = (left + p.fine_x) / 8, to = (right - 1 + p.fine_x) / 8;
        draw_tiles(p, c, values, columns_right(start, from), (to - from) / 2 + 1, 1, line + 8 * from, 0);
        if (!(p.mask & kLeftBackground)) store64(line, splat(values[0]));
    } else {
        std::memset(line, values[0], Frame::kWidth);
    }
    draw_sprites(p, c, values, VisibleSprites(p, y, y + 1), y, y + 1, start, line, 0);
    std::memcpy(out.line(y) + left, line + left, static_cast<std::size_t>(right - left));
    out.emphasis[y] = p.mask >> 5;
}

}  // namespace wz::ppu
