#include "nes/ppu.hpp"

#include <algorithm>

#include "nes/bytemap.hpp"
#include "nes/ppu_address.hpp"
#include "nes/ppu_sprites.hpp"

namespace wz::ppu {
namespace {

/// Marks a background pixel that a sprite has claimed; the colour look-up ignores the bit.
constexpr u8 kClaimed = 0x40;

/// The eight pixels (0 or 1) of a pattern plane, leftmost in the lowest byte.
inline u64 spread(u8 plane) {
    const u64 bits = splat(plane) & 0x0102040810204080ull;
    return ((bits + splat(0x7F)) >> 7) & splat(1);
}
inline u64 tile_row(const Ppu& p, const Cartridge& c, int tile, int row) {
    if (!c.chr_is_ram) return load64(c.tiles.data() + tile * 64 + row * 8);
    const u8* pattern = p.chr_ram + tile * 16 + row;
    return spread(pattern[0]) | spread(pattern[8]) << 1;
}
/// 0xFF in every byte whose pixel (low two bits) is not transparent.
inline u64 opaque_bytes(u64 pixels) { return ((pixels | pixels >> 1) & splat(1)) * 0xFF; }

/// The 32 palette entries as colours, as the output stage sees them: entry 0 behind everything.
void output_colours(const Ppu& p, u8 (&table)[64]) {
    const u8 keep = (p.mask & 1) ? 0x30 : 0x3F;
    for (int i = 0; i < 64; ++i) table[i] = p.palette[(i & 3) ? (i & 31) : 0] & keep;
}

inline u8 backdrop(const Ppu& p) {
    // With rendering off and v inside the palette, the output stage shows the entry v points at.
    const int at = (p.v & 0x3F00) != 0x3F00 ? 0 : (p.v & 3) ? p.v & 0x1F : p.v & 0x0F;
    return p.palette[at] & ((p.mask & 1) ? 0x30 : 0x3F);
}

void fill_backdrop(const Ppu& p, Frame& out, i64 from, i64 to) {
    const u8 colour = backdrop(p);
    while (from < to) {
        const int y = static_cast<int>(from / kDotsPerLine), dot = static_cast<int>(from % kDotsPerLine);
        const int end = static_cast<int>(std::min<i64>(kDotsPerLine, dot + (to - from)));
        const int left = std::clamp(dot - 1, 0, 256), right = std::clamp(end - 1, 0, 256);
        std::memset(out.line(y) + left, colour, static_cast<std::size_t>(right - left));
        out.emphasis[y] = p.mask >> 5;
        from += end - dot;
    }
}

/// The top `rows` lines (Rows of them, where that is known) of the 33 tiles from `start`, as palette slots
/// 0..15.
template <int Rows>
void draw_tiles(const Ppu& p, const Cartridge& c, u8* line, u16 start, int rows) {
    const int fine_y = start >> 12, table = (p.ctrl & kBackgroundTable) ? 256 : 0;
    const int attribute_shift = (start >> 4) & 4, attribute_row = 0x3C0 | ((start >> 4) & 0x38);
    const int name_row = start & 0x3E0;
    const int count = Rows ? Rows : rows;
    const u8* const tiles = c.tiles.data() + (table * 8 + fine_y) * 8;
    line -= p.fine_x;
    int column = start & 31;
    const u8* names = p.vram + c.nametable[(start >> 10) & 3];
    const u8* const next_names = p.vram + c.nametable[((start >> 10) & 3) ^ 1];
    for (int i = 0; i < 33; ++i, ++column, line += 8) {
        if (column == 32) {
            column = 0;
            names = next_names;
        }
        const int tile = names[name_row | column];
        const int attribute = names[attribute_row | column >> 2] >> (attribute_shift | (column & 2)) & 3;
        const u64 slot = splat(static_cast<u8>(attribute << 2));
        if (__builtin_expect(c.chr_is_ram, 0)) {
            for (int r = 0; r < count; ++r)
                store64(line + r * Frame::kStride, tile_row(p, c, table + tile, fine_y + r) | slot);
        } else {
            const u8* from = tiles + tile * 64;
            for (int r = 0; r < count; ++r) store64(line + r * Frame::kStride, load64(from + r * 8) | slot);
        }
    }
}

/// One line of a sprite over eight palette slots at `at`. The first opaque sprite claims a pixel even where
/// it then hides behind the background.
inline void draw_sprite_row(const Ppu& p, const Cartridge& c, const Sprite& s, int line, u8* at) {
    u64 clip = ~0ull;
    if (!(p.mask & kLeftSprites) && s.x < 8) clip = s.x == 0 ? 0 : ~0ull << 8 * (8 - s.x);
    const u64 slot = splat(static_cast<u8>(16 | (s.attributes & 3) << 2));
    int row;
    const int tile = sprite_tile(p, s, line, row);
    u64 pixels = tile_row(p, c, tile, row);
    if (s.attributes & 0x40) pixels = __builtin_bswap64(pixels);
    const u64 under = load64(at);
    const u64 claimed = ((under >> 6) & splat(1)) * 0xFF;
    const u64 mine = opaque_bytes(pixels) & ~claimed & clip;
    const u64 visible = (s.attributes & 0x20) ? mine & ~opaque_bytes(under) : mine;
    store64(at, (under & ~visible) | ((pixels | slot) & visible) | (mine & splat(kClaimed)));
}

/// Composes sprites over palette slots in lines [first, last); the first eight in OAM order show on a line.
void draw_sprites(const Ppu& p, const Cartridge& c, Frame& out, int first, int last) {
    u8 shown[Frame::kHeight] = {};
    for (int i = 0; i < 64; ++i) {
        const Sprite s = sprite_at(p, i);
        const int from = std::max(s.top, first), to = std::min(s.top + s.height, last);
        for (int y = from; y < to; ++y)
            if (shown[y]++ < 8) draw_sprite_row(p, c, s, y - s.top, out.line(y) + s.x);
    }
}

/// Pixels [left, right) of line y, with everything as it is now for the whole of them. `start` is the address
/// of the line's first tile.
void draw_span(const Ppu& p, const Cartridge& c, Frame& out, int y, u16 start, int left, int right) {
    alignas(64) u8 buffer[Frame::kStride] = {};
    u8* line = buffer + Frame::kMargin;
    if (p.mask & kShowBackground) {
        draw_tiles<0>(p, c, line, start, 1);
        if (!(p.mask & kLeftBackground)) store64(line, 0);
    }
    if (p.mask & kShowSprites) {
        int shown = 0;
        for (int i = 0; i < 64 && shown < 8; ++i) {
            const Sprite s = sprite_at(p, i);
            if (y < s.top || y >= s.top + s.height) continue;
            ++shown;
            draw_sprite_row(p, c, s, y - s.top, line + s.x);
        }
    }
    u8 colours[64];
    output_colours(p, colours);
    map_bytes(line, line, Frame::kWidth, colours);
    std::memcpy(out.line(y) + left, line + left, static_cast<std::size_t>(right - left));
    out.emphasis[y] = p.mask >> 5;
}

/// What the sprites put on line y, pixel by pixel, for the dot-by-dot path.
struct SpriteLine {
    static constexpr u8 kBehind = 0x20, kZero = 0x40;
    u8 pixels[264] = {};  ///< 0, or slot 16..31 with flags
};
void sprites_on_line(const Ppu& p, const Cartridge& c, int y, SpriteLine& line) {
    int shown = 0;
    for (int i = 0; i < 64 && shown < 8; ++i) {
        const Sprite s = sprite_at(p, i);
        if (y < s.top || y >= s.top + s.height) continue;
        ++shown;
        int row;
        const int tile = sprite_tile(p, s, y - s.top, row);
        u64 pixels = tile_row(p, c, tile, row);
        if (s.attributes & 0x40) pixels = __builtin_bswap64(pixels);
        for (int k = 0; k < 8; ++k, pixels >>= 8) {
            u8& at = line.pixels[s.x + k];
            if ((pixels & 3) && !at)
                at = static_cast<u8>(16 | (s.attributes & 3) << 2 | (pixels & 3) |
                                     ((s.attributes & 0x20) ? SpriteLine::kBehind : 0) |
                                     (i == 0 ? SpriteLine::kZero : 0));
        }
    }
}

void load_tile(Ppu& p, const Cartridge& c, u16 v, int shift) {
    const TileRow tile = fetch_tile(p, c, v);
    auto put = [shift](u16& reg, int byte) {
        reg = static_cast<u16>((reg & ~(0xFF << shift)) | byte << shift);
    };
    put(p.shift_lo, tile.lo);
    put(p.shift_hi, tile.hi);
    put(p.shift_attr_lo, (tile.attribute & 1) ? 0xFF : 0);
    put(p.shift_attr_hi, (tile.attribute & 2) ? 0xFF : 0);
}

/// Fills the shift registers with what fetching from v would have left in them before `dot`.
void revive_pipeline(Ppu& p, const Cartridge& c, int dot) {
    const u16 last = previous_column(p.v);
    load_tile(p, c, previous_column(last), 8);
    load_tile(p, c, last, 0);
    const int shifts = dot > 0 && dot <= 256 ? (dot - 1) & 7 : 0;
    for (u16* reg : {&p.shift_lo, &p.shift_hi, &p.shift_attr_lo, &p.shift_attr_hi})
        *reg = static_cast<u16>(*reg << shifts);
    p.pipeline_live = 1;
}

/// At dot 0: do the shift registers hold just what follows from v?
bool pipeline_follows_address(Ppu& p, const Cartridge& c) {
    const u16 lo = p.shift_lo, hi = p.shift_hi, alo = p.shift_attr_lo, ahi = p.shift_attr_hi;
    revive_pipeline(p, c, 0);
    const bool same =
        lo == p.shift_lo && hi == p.shift_hi && alo == p.shift_attr_lo && ahi == p.shift_attr_hi;
    p.shift_lo = lo, p.shift_hi = hi, p.shift_attr_lo = alo, p.shift_attr_hi = ahi;
    return same;
}

void clear_pipeline(Ppu& p) {
    p.pipeline_live = 0;
    p.shift_lo = p.shift_hi = p.shift_attr_lo = p.shift_attr_hi = 0;
}

}  // namespace

void walk_address(Ppu& p, int from, int to, bool prerender) {
    const int columns = (std::min(to, 257) - 1) / 8 - (std::max(from, 1) - 1) / 8;
    if (columns > 0) p.v = columns_right(p.v, columns);
    if (from <= 256 && to > 256) p.v = next_row(p.v);
    if (from <= 257 && to > 257) p.v = take(p.v, p.t, kHorizontal);
    if (prerender && from <= 304 && to > 280) p.v = take(p.v, p.t, kVertical);
    for (int dot : {328, 336})
        if (from <= dot && to > dot) p.v = next_column(p.v);
}

void draw_lines(Ppu& p, const Cartridge& c, Frame& out, int first, int count) {
    u16 start = previous_column(previous_column(p.v));
    const int last = first + count;
    for (int y = first; y < last;) {
        int rows = std::min(8 - (start >> 12), last - y);
        // The tile row was fetched with the old column where t has changed since.
        if ((start ^ p.t) & kHorizontal) rows = 1;
        if (p.mask & kShowBackground) {
            if (rows == 8)
                draw_tiles<8>(p, c, out.line(y), start, 8);
            else
                draw_tiles<0>(p, c, out.line(y), start, rows);
            if (!(p.mask & kLeftBackground))
                for (int r = 0; r < rows; ++r) store64(out.line(y + r), 0);
        } else {
            for (int r = 0; r < rows; ++r) std::memset(out.line(y + r), 0, Frame::kWidth);
        }
        // `rows` never passes the tile's last line, so only its last step can change the coarse row.
        start = next_row(static_cast<u16>(start + ((rows - 1) << 12)));
        start = take(start, p.t, kHorizontal);
        y += rows;
    }
    p.v = next_column(next_column(start));
    if (p.mask & kShowSprites) draw_sprites(p, c, out, first, last);
    u8 colours[64];
    output_colours(p, colours);
    for (int y = first; y < last; ++y) map_bytes(out.line(y), out.line(y), Frame::kWidth, colours);
    std::memset(out.emphasis + first, p.mask >> 5, static_cast<std::size_t>(count));
}

void keep_pipeline(Ppu& p, const Cartridge& c, const Timing& t) {
    if (!rendering(p) || p.pipeline_live) return;
    const i64 at = p.done - p.origin;
    const int line = static_cast<int>(at / kDotsPerLine), dot = static_cast<int>(at % kDotsPerLine);
    const bool prerender = line == t.lines - 1;
    if (line >= Frame::kHeight && !prerender) return;
    if (dot > 336 || (dot <= 256 && !prerender)) {
        revive_pipeline(p, c, dot);
    } else if (dot > 328) {
        load_tile(p, c, previous_column(p.v), 8);
        p.pipeline_live = 1;
    }
}

i64 run_dots(Ppu& p, const Cartridge& c, Frame* out, int y, int from, int to) {
    if (!p.pipeline_live) revive_pipeline(p, c, from);
    SpriteLine sprites;
    u8 colours[64];
    const bool pixels = from <= 256 && to > 1;
    if (pixels) {
        if (p.mask & kShowSprites) sprites_on_line(p, c, y, sprites);
        if (out) {
            output_colours(p, colours);
            out->emphasis[y] = p.mask >> 5;
        }
    }
    i64 hit = kNever;
    for (int dot = from; dot < to; ++dot) {
        if (dot >= 1 && dot <= 256) {
            const int x = dot - 1, bit = 15 - p.fine_x;
            int back = 0, front = 0;
            if ((p.mask & kShowBackground) && (x >= 8 || (p.mask & kLeftBackground)))
                back = (p.shift_lo >> bit & 1) | (p.shift_hi >> bit & 1) << 1 |
                       (p.shift_attr_lo >> bit & 1) << 2 | (p.shift_attr_hi >> bit & 1) << 3;
            if (x >= 8 || (p.mask & kLeftSprites)) front = sprites.pixels[x];
            if ((front & SpriteLine::kZero) && (back & 3) && x < 255 && hit == kNever)
                hit = p.origin + i64{y} * kDotsPerLine + dot;
            if (out) {
                const bool over = front && !((front & SpriteLine::kBehind) && (back & 3));
                out->line(y)[x] = colours[over ? front & 31 : back];
            }
            for (u16* reg : {&p.shift_lo, &p.shift_hi, &p.shift_attr_lo, &p.shift_attr_hi})
                *reg = static_cast<u16>(*reg << 1);
            if ((dot & 7) == 0) {
                load_tile(p, c, p.v, 0);
                p.v = next_column(p.v);
                if (dot == 256) p.v = next_row(p.v);
            }
        } else if (dot == 257) {
            p.v = take(p.v, p.t, kHorizontal);
        } else if (dot == 328 || dot == 336) {
            load_tile(p, c, p.v, dot == 328 ? 8 : 0);
            p.v = next_column(p.v);
        }
    }
    return hit;
}

void catch_up(Ppu& p, const Cartridge& c, const Timing& t, Frame* out, i64 target) {
    while (p.done < target) {
        const i64 at = p.done - p.origin;
        if (at < kVisibleDots) {
            const i64 end = std::min(target, p.origin + kVisibleDots);
            if (!rendering(p)) {
                if (out) fill_backdrop(p, *out, at, end - p.origin);
                p.done = end;
                continue;
            }
            ensure_forecast(p, c);
            const int line = static_cast<int>(at / kDotsPerLine), dot = static_cast<int>(at % kDotsPerLine);
            const int lines = static_cast<int>((end - p.done) / kDotsPerLine);
            const bool whole = dot == 0 && lines > 0;
            if (whole || (dot <= 320 && dot + (end - p.done) > 257)) p.oam_addr = 0;
            if (!out && !p.pipeline_live) {
                if (whole) {
                    p.v = columns_right(take(rows_down(p.v, lines), p.t, kHorizontal), 2);
                    p.done += i64{lines} * kDotsPerLine;
                } else {
                    const int to = static_cast<int>(std::min<i64>(kDotsPerLine, dot + (end - p.done)));
                    walk_address(p, dot, to, false);
                    p.done += to - dot;
                }
            } else if (whole && (!p.pipeline_live || pipeline_follows_address(p, c))) {
                p.pipeline_live = 0;
                if (!out) continue;
                draw_lines(p, c, *out, line, lines);
                p.done += i64{lines} * kDotsPerLine;
            } else {
                const int to = static_cast<int>(std::min<i64>(kDotsPerLine, dot + (end - p.done)));
                if (p.pipeline_live) {
                    run_dots(p, c, out, line, dot, to);
                } else {
                    const int left = std::max(dot - 1, 0), right = std::min(to - 1, 256);
                    if (left < right) {
                        const u16 start = columns_right(p.v, -2 - left / 8);
                        draw_span(p, c, *out, line, start, left, right);
                    }
                    walk_address(p, dot, to, false);
                }
                p.done += to - dot;
            }
            continue;
        }
        const i64 rise = vblank_dot(p), clear = clear_dot(p, t);
        if (p.done < rise) {
            p.done = std::min(target, rise);
        } else if (p.done == rise) {
            p.vblank = !p.vblank_lost;
            p.vblank_lost = 0;
            clear_pipeline(p);
            ++p.done;
        } else if (p.done < clear) {
            p.done = std::min(target, clear);
        } else if (p.done == clear) {
            p.vblank = 0;
            p.sprite_zero_dot = p.overflow_dot = kNever;
            p.forecast_valid = 0;
            ++p.done;
        } else {
            const i64 start = clear - 1;
            const int from = static_cast<int>(p.done - start);
            const int to = from == 340 ? 341 : static_cast<int>(std::min<i64>(340, target - start));
            if (rendering(p)) {
                // Live shift registers here hold what was fetched from dot 321 on.
                if (p.pipeline_live && from > 320)
                    run_dots(p, c, nullptr, 0, from, to);
                else
                    walk_address(p, from, to, true);
                if (from <= 320 && to > 257) p.oam_addr = 0;
            }
            p.done += to - from;
            const bool dropped = to == 340 && t.skips_odd_dot && p.odd_frame && rendering(p);
            if (dropped || to == 341) {
                p.origin = p.done;
                p.odd_frame ^= 1;
                p.forecast_valid = 0;
            }
        }
    }
}

}  // namespace wz::ppu
