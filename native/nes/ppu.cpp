#include "nes/ppu.hpp"

#include <algorithm>

#include "nes/ppu_address.hpp"
#include "nes/ppu_draw.hpp"

namespace wz::ppu {
namespace {

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
    const u8* values = nullptr;
    const bool pixels = from <= 256 && to > 1;
    if (pixels) {
        if (p.mask & kShowSprites) sprites_on_line(p, c, y, sprites);
        if (out) {
            values = output_values(p, *out);
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
                out->line(y)[x] = values[over ? front & 31 : back];
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
                if (out && to > 256) out->complete(line + 1);
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
