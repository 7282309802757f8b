#include "nes/ppu_draw.hpp"

#include <algorithm>

#include "nes/ppu_address.hpp"
#include "simd/kernels.hpp"

namespace wz::ppu {
namespace {

using simd::Kernels;

/// 0xFF in every byte whose pixel (low two bits) is not transparent.
inline u64 opaque_bytes(u64 pixels) { return ((pixels | pixels >> 1) & splat(1)) * 0xFF; }

inline u8 encoded(const Ppu& p, const Frame& out, u8 colour) {
    return out.encoding ? out.encoding[(p.mask >> 5) * 64 + colour] : colour;
}

/// The top `rows` lines of the tiles from `start` on, over the whole width and a little more.
void draw_tiles(const Ppu& p, const Cartridge& c, const u8* values, u16 start, int rows, u8* line,
                int stride) {
    const int fine_y = start >> 12, table = (p.ctrl & kBackgroundTable) ? 256 : 0;
    const int attribute_shift = (start >> 4) & 4, attribute_row = 0x3C0 | ((start >> 4) & 0x38);
    const int name_row = start & 0x3E0;
    const u8* tiles[Kernels::kTiles];
    u8 attributes[Kernels::kTiles];
    alignas(8) u8 decoded[Kernels::kTiles][64];  // of a cartridge whose patterns may change
    int column = start & 31;
    const u8* names = p.vram + c.nametable[(start >> 10) & 3];
    const u8* const next_names = p.vram + c.nametable[((start >> 10) & 3) ^ 1];
    for (int i = 0; i < Kernels::kTiles; ++i, ++column) {
        if (column == 32) {
            column = 0;
            names = next_names;
        }
        const int tile = table + names[name_row | column];
        attributes[i] = names[attribute_row | column >> 2] >> (attribute_shift | (column & 2)) & 3;
        tiles[i] = c.tiles.data() + tile * 64 + fine_y * 8;
        if (__builtin_expect(c.chr_is_ram, 0)) {
            for (int r = 0; r < rows; ++r) store64(decoded[i] + r * 8, tile_row(p, c, tile, fine_y + r));
            tiles[i] = decoded[i];
        }
    }
    simd::kernels().draw_tiles(tiles, attributes, values, rows, line - p.fine_x, stride);
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

/// One line of a sprite over what is at `at`. Sprites are drawn last to first: the first opaque one has the
/// pixel, even where it then hides behind the background.
void draw_sprite_row(const Ppu& p, const Cartridge& c, const u8* values, const Sprite& s, int line, u16 start,
                     u8* at) {
    int row;
    const int tile = sprite_tile(p, s, line, row);
    u64 pixels = tile_row(p, c, tile, row);
    if (s.attributes & 0x40) pixels = __builtin_bswap64(pixels);
    u64 opaque = opaque_bytes(pixels);
    if (!(p.mask & kLeftSprites) && s.x < 8) opaque &= s.x == 0 ? 0 : ~0ull << 8 * (8 - s.x);
    const u8* palette = values + (16 | (s.attributes & 3) << 2);
    const u64 low = (pixels & splat(1)) * 0xFF, high = (pixels >> 1 & splat(1)) * 0xFF;
    u64 shown = (low & ~high & splat(palette[1])) | (high & ((low & splat(palette[3])) | (~low & splat(palette[2]))));
    if ((s.attributes & 0x20) && opaque) {
        const u64 slots = background_slots(p, c, start, s.x), over = opaque_bytes(slots);
        u8 behind[8];
        for (int i = 0; i < 8; ++i) behind[i] = values[slots >> 8 * i & 15];
        shown = (shown & ~over) | (load64(behind) & over);
    }
    store64(at, (load64(at) & ~opaque) | (shown & opaque));
}

/// Draws sprites in lines [first, last); the first eight in OAM order show on a line. `start_of` gives the
/// address of a line's first tile, `line_at` its place.
template <class StartOf, class LineAt>
void draw_sprites(const Ppu& p, const Cartridge& c, const u8* values, int first, int last, StartOf start_of,
                  LineAt line_at) {
    u8 shown[Frame::kHeight];
    std::memset(shown + first, 0, static_cast<std::size_t>(last - first));
    struct Visible {
        Sprite sprite;
        u32 lines;  ///< a bit for each that shows
    } visible[64];
    int count = 0;
    for (int i = 0; i < 64; ++i) {
        const Sprite s = sprite_at(p, i);
        const int from = std::max(s.top, first), to = std::min(s.top + s.height, last);
        u32 lines = 0;
        for (int y = from; y < to; ++y)
            if (shown[y]++ < 8) lines |= 1u << (y - s.top);
        if (lines) visible[count++] = {s, lines};
    }
    while (count-- > 0) {
        const Sprite& s = visible[count].sprite;
        for (u32 lines = visible[count].lines; lines; lines &= lines - 1) {
            const int line = __builtin_ctz(lines), y = s.top + line;
            const u16 start = s.attributes & 0x20 ? start_of(y) : u16{0};
            draw_sprite_row(p, c, values, s, line, start, line_at(y) + s.x);
        }
    }
}

}  // namespace

void output_values(const Ppu& p, const Frame& out, u8 (&values)[32]) {
    const u8 keep = (p.mask & 1) ? 0x30 : 0x3F;
    for (int i = 0; i < 32; ++i) values[i] = encoded(p, out, p.palette[(i & 3) ? i : 0] & keep);
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
        from += end - dot;
    }
}

void draw_lines(Ppu& p, const Cartridge& c, Frame& out, int first, int count) {
    u8 values[32];
    output_values(p, out, values);
    const u16 top = columns_right(p.v, -2);
    // The first line was fetched with the old column where t has changed since.
    auto start_of = [&](int y) {
        return y == first ? top : take(rows_down(top, y - first), p.t, kHorizontal);
    };
    const int last = first + count;
    for (int y = first; y < last;) {
        const u16 start = start_of(y);
        const int rows = (start ^ p.t) & kHorizontal ? 1 : std::min(8 - (start >> 12), last - y);
        if (p.mask & kShowBackground) {
            draw_tiles(p, c, values, start, rows, out.line(y), Frame::kStride);
            if (!(p.mask & kLeftBackground))
                for (int r = 0; r < rows; ++r) store64(out.line(y + r), splat(values[0]));
        } else {
            for (int r = 0; r < rows; ++r) std::memset(out.line(y + r), values[0], Frame::kWidth);
        }
        y += rows;
    }
    p.v = columns_right(take(rows_down(top, count), p.t, kHorizontal), 2);
    if (p.mask & kShowSprites)
        draw_sprites(p, c, values, first, last, start_of, [&](int y) { return out.line(y); });
    std::memset(out.emphasis + first, p.mask >> 5, static_cast<std::size_t>(count));
}

void draw_span(const Ppu& p, const Cartridge& c, Frame& out, int y, u16 start, int left, int right) {
    alignas(64) u8 buffer[Frame::kStride + Frame::kMargin];
    u8* line = buffer + Frame::kMargin;
    u8 values[32];
    output_values(p, out, values);
    if (p.mask & kShowBackground) {
        draw_tiles(p, c, values, start, 1, line, 0);
        if (!(p.mask & kLeftBackground)) store64(line, splat(values[0]));
    } else {
        std::memset(line, values[0], Frame::kWidth);
    }
    if (p.mask & kShowSprites)
        draw_sprites(p, c, values, y, y + 1, [&](int) { return start; }, [&](int) { return line; });
    std::memcpy(out.line(y) + left, line + left, static_cast<std::size_t>(right - left));
    out.emphasis[y] = p.mask >> 5;
}

}  // namespace wz::ppu
