#include "nes/ppu.hpp"

#include <algorithm>

#include "compat/blocks.hpp"
#include "nes/palette.hpp"
#include "nes/ppu_sprites.hpp"
#include "nes/ppu_tiles.hpp"

namespace wz::compat::ppu {
namespace {

using wz::ppu::kHorizontal;
using wz::ppu::kVertical;
using wz::ppu::next_row;
using wz::ppu::take;
using wz::ppu::TilesOnLine;

constexpr int kPostLine = 240, kVblankLine = 241, kLastLine = 260, kPreLine = 261;
constexpr u8 kClaimed = 0x40;  ///< marks a background pixel that a sprite has claimed
constexpr int kMargin = 8, kStride = 288;

bool rendering(const Ppu& p) { return p.show_background && p.show_sprites; }

/// The eight pixels (0 or 1) of a pattern plane, leftmost in the lowest byte.
u64 spread(u8 plane) {
    const u64 bits = splat(plane) & 0x0102040810204080ull;
    return ((bits + splat(0x7F)) >> 7) & splat(1);
}
/// 0xFF in every byte whose pixel (low two bits) is not transparent.
u64 opaque_bytes(u64 pixels) { return ((pixels | pixels >> 1) & splat(1)) * 0xFF; }

/// nes-py's picture bus: palettes begin a byte early, and nothing is mirrored above them.
u8 bus_read(const Console& k, u16 addr) {
    const Ppu& p = k.state.ppu;
    if (addr < 0x2000) return k.cartridge->chr[addr];
    // Beyond the fourth nametable, the fourth answers.
    if (addr < 0x3EFF)
        return p.vram[k.cartridge->nametable[addr < 0x3000 ? (addr >> 10) & 3 : 3] + (addr & 0x3FF)];
    return addr < 0x3FFF ? p.palette[addr & 0x1F] : 0;
}
void bus_write(Console& k, u16 addr, u8 value) {
    Ppu& p = k.state.ppu;
    if (addr < 0x2000) return;
    if (addr < 0x3EFF)
        p.vram[k.cartridge->nametable[addr < 0x3000 ? (addr >> 10) & 3 : 3] + (addr & 0x3FF)] = value;
    else if (addr < 0x3FFF)
        p.palette[addr == 0x3F10 ? 0 : addr & 0x1F] = value;
}

const Colours& colours(Console& k) {
    const Ppu& p = k.state.ppu;
    Colours& c = k.colours;
    if (c.known && std::memcmp(c.of, p.palette, sizeof c.of) == 0) return c;
    c.known = true;
    std::memcpy(c.of, p.palette, sizeof c.of);
    for (int i = 0; i < 32; ++i) {
        const u32 rgb = c.words[i] = kRgbPalette[p.palette[(i & 3) ? i : 0] & 63];
        c.red[i] = static_cast<u8>(rgb >> 16), c.green[i] = static_cast<u8>(rgb >> 8),
        c.blue[i] = static_cast<u8>(rgb);
    }
    for (int i = 0; i < 16; ++i)
        for (int x = 0; x < 48; x += 3)
            c.blocks[i][x] = c.red[i], c.blocks[i][x + 1] = c.green[i], c.blocks[i][x + 2] = c.blue[i];
    return c;
}

u8* row(const Screen& screen, int y) {
    return screen.pixels + std::size_t{kWidth} * static_cast<std::size_t>(y) * (screen.rgb ? 3 : 4);
}

/// The sprites, from the one that the address is at on, whose line is one of [from, to).
u64 sprites_between(const Ppu& p, int from, int to) {
    from = std::max(from, 0);
    return wz::ppu::SpriteLines(p.oam).among(from, to - from) & ~0ull << p.oam_addr / 4;
}

/// The sprites that line `line` + 1 shows, chosen at the end of `line`.
void list_sprites(Ppu& p, int line) {
    p.listed = 0;
    for (u64 found = sprites_between(p, line - (p.tall ? 15 : 7), line + 1); found && p.listed < 8;
         found &= found - 1)
        p.list[p.listed++] = static_cast<u8>(__builtin_ctzll(found));
}

/// Line y of sprite i, as 8 pixels of 0..3. The row is computed from where the sprite is now: on line 0,
/// whose list is left over, it is negative and so reads another tile's bytes.
u64 sprite_pixels(const Console& k, int i, int y) {
    const Ppu& p = k.state.ppu;
    const u8* o = p.oam + i * 4;
    const int height = p.tall ? 16 : 8;
    int row = y - static_cast<u8>(o[0] + 1);
    if (static_cast<unsigned>(row) >= static_cast<unsigned>(height)) row %= height;
    if (o[2] & 0x80) row ^= height - 1;
    int addr = o[1] * 16 + (p.sprite_table ? 0x1000 : 0);
    if (p.tall) {
        row = (row & 7) | (row & 8) << 1;
        addr = (o[1] >> 1) * 32 | (o[1] & 1) << 12;
    }
    u64 pixels;
    if (row >= 0) {
        pixels = load64(k.cartridge->tiles.data() + ((addr + row) >> 4) * 64 + (row & 7) * 8);
    } else {
        const u16 at = static_cast<u16>(addr + row);
        pixels = spread(bus_read(k, at)) | spread(bus_read(k, static_cast<u16>(at + 8))) << 1;
    }
    return (o[2] & 0x40) ? __builtin_bswap64(pixels) : pixels;
}

/// Puts sprite i over the slots of line y. Only pixels in [from, to) can hit.
void draw_sprite(Console& k, int i, int y, u8* line, int from, int to) {
    Ppu& p = k.state.ppu;
    const u8* o = p.oam + i * 4;
    const int x = o[3];
    const int left = p.hide_left_sprites ? std::max(from, 8) : from;
    u64 window = ~0ull;
    if (x < left) window = left - x >= 8 ? 0 : window << 8 * (left - x);
    if (x + 8 > to) window = x >= to ? 0 : window & (~0ull >> 8 * (x + 8 - to));
    const u64 pixels = sprite_pixels(k, i, y);
    const u64 under = load64(line + x);
    const u64 claimed = ((under >> 6) & splat(1)) * 0xFF;
    const u64 mine = opaque_bytes(pixels) & ~claimed & window;
    if (i == 0 && p.show_background && (mine & opaque_bytes(under))) p.hit = 1;
    const u64 visible = (o[2] & 0x20) ? mine & ~opaque_bytes(under) : mine;
    const u64 slot = splat(static_cast<u8>(16 | (o[2] & 3) << 2));
    store64(line + x, (under & ~visible) | ((pixels | slot) & visible) | (mine & splat(kClaimed)));
}

/// What was painted, if that is known; forgotten when the screen is another.
Shown* shown_on(Console& k) {
    Shown* const s = k.shown;
    if (!s || !s->kept) return s;
    if (s->pixels != k.screen.pixels) s->forget();
    s->pixels = k.screen.pixels;
    if (std::memcmp(s->palette, k.state.ppu.palette, sizeof s->palette) != 0)
        s->recolour(k.state.ppu.palette);
    return s;
}

TilesOnLine tiles_at(const Console& k, u16 v) {
    const u8* const vram = k.state.ppu.vram;
    const auto& nametable = k.cartridge->nametable;
    return {vram + nametable[(v >> 10) & 3], vram + nametable[((v >> 10) & 3) ^ 1], v};
}

/// The top `rows` lines of `pairs` of the tiles from v on, behind the first 2 * `skip`, as palette slots. The
/// first tile of all would be at `line`.
void draw_tiles(const Console& k, u8* line, u16 v, const TilesOnLine& tiles, int skip, int pairs, int rows) {
    static constexpr u8 kSlots[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    const u8* const first =
        k.cartridge->tiles.data() + ((k.state.ppu.background_table << 8) * 8 + (v >> 12 & 7)) * 8;
    simd::kernels().draw_tiles({first, tiles.names() + 2 * skip, tiles.slots() + skip, tiles.odd(), kSlots},
                               pairs, rows, line + 16 * skip, kStride);
}

/// Pixels [from, to) of line y: v walks as it goes.
void draw_span(Console& k, int y, int from, int to) {
    Ppu& p = k.state.ppu;
    alignas(64) u8 buffer[kStride] = {};
    u8* line = buffer + kMargin;
    if (p.show_background) {
        const int begin = from - ((p.fine_x + from) & 7);
        draw_tiles(k, line + begin, p.v, tiles_at(k, p.v), 0, (to - begin + 15) / 16, 1);
        const int column = (p.v & 31) + (to - begin) / 8;
        p.v = static_cast<u16>(((p.v & ~31) | (column & 31)) ^ (column & 32) << 5);
        if (p.hide_left_background) store64(line, 0);
    }
    if (p.show_sprites)
        for (int n = 0; n < p.listed; ++n)
            if (const int x = p.oam[p.list[n] * 4 + 3]; x < to && x + 8 > from)
                draw_sprite(k, p.list[n], y, line, from, to);
    if (Shown* shown = shown_on(k)) shown->painter[y] = Shown::kUnknown;
    simd::kernels().paint(colours(k), line, from, to, k.screen.rgb, row(k.screen, y));
}

/// The row of these tiles.
Shown::Row row_of(const Ppu& p, u16 v, const TilesOnLine& tiles, int rows) {
    Shown::Row row;
    std::memcpy(row.names, tiles.names(), sizeof row.names);
    std::memcpy(row.slots, tiles.slots(), sizeof row.slots);
    row.odd = static_cast<u8>(tiles.odd());
    row.fine_x = p.fine_x;
    row.fine_y = static_cast<u8>(v >> 12 & 7);
    row.lines = static_cast<u8>(rows);
    row.table = p.background_table;
    row.hidden = p.hide_left_background;
    return row;
}

/// Whole lines [first, first + count) with background and sprites shown and nothing written meanwhile.
void draw_lines(Console& k, int first, int count) {
    Ppu& p = k.state.ppu;
    const Colours& palette = colours(k);
    Shown* const shown = shown_on(k);
    Shown* const kept = shown && shown->kept ? shown : nullptr;
    const simd::Kernels& does = simd::kernels();
    // Which sprites each line shows, and in which blocks; the first line's were listed before.
    const int range = p.tall ? 16 : 8;
    u8 listed[kHeight + 8] = {}, list[kHeight][8];
    u16 covered[kHeight + 8] = {};
    auto add = [&](int y, int i) {
        const int x = p.oam[i * 4 + 3];
        list[y][listed[y]++] = static_cast<u8>(i);
        covered[y] |= static_cast<u16>(1 << (x >> 4) | 1 << ((x + 7) >> 4));
    };
    for (int n = 0; n < p.listed; ++n) add(first, p.list[n]);
    for (u64 found = sprites_between(p, first + 1 - range, first + count - 1); found; found &= found - 1) {
        const int i = __builtin_ctzll(found), top = p.oam[i * 4] + 1;
        for (int y = std::max(top, first + 1); y < std::min(top + range, first + count); ++y)
            if (listed[y] < 8) add(y, i);
    }
    alignas(64) u8 buffer[8 * kStride];
    for (int y = first; y < first + count;) {
        // The first line starts where v is, the others where t says.
        const bool follows = !((p.v ^ p.t) & kHorizontal);
        const int rows = follows ? std::min(8 - (p.v >> 12 & 7), first + count - y) : 1;
        const int top = y;
        const u16 v = p.v;
        const TilesOnLine tiles = tiles_at(k, v);
        u16 dirty[8], always = Shown::kEverywhere, drawn = 0, plain = 0, changed = Shown::kEverywhere;
        if (shown) {
            const u16 other = shown->put(top, row_of(p, v, tiles, rows), *k.game);
            if (kept) changed = other;
            if (k.screen.rgb) plain = shown->plain[top];
        }
        if (kept && !changed && rows == 8 && !load64(listed + top) && kept->untouched(top)) {
            y += rows;
            p.v = take(next_row(v | 7 << 12), p.t, kHorizontal);
            continue;
        }
        for (int r = 0; r < rows; ++r) {
            const u16 now = covered[top + r];
            dirty[r] = changed | now;
            if (kept) {
                dirty[r] |= kept->painter[top + r] == top ? kept->stale[top + r] : Shown::kEverywhere;
                kept->painter[top + r] = static_cast<u8>(top);
                kept->stale[top + r] = now;
            }
            always &= dirty[r];
        }
        // What all lines have in common goes first, so far as there are colours of the background only.
        if (!k.screen.rgb) always = 0;
        for (int r = 0; r < rows; ++r) {
            dirty[r] &= static_cast<u16>(~always | covered[top + r]);
            drawn |= dirty[r];
        }
        const u32 patterned = always & ~plain;
        drawn |= patterned;
        u8* const corner = buffer + kMargin;
        u8* const to = row(k.screen, top);
        for_runs(drawn, [&](int at, int blocks) {
            draw_tiles(k, corner - p.fine_x, v, tiles, at, blocks + 1, rows);
        });
        for (int r = 0; r < rows && p.hide_left_background; ++r) store64(corner + r * kStride, 0);
        if (always & plain) fill(palette, shown->flat[top], always & plain, rows, to);
        for_runs(patterned, [&](int at, int blocks) {
            does.paint_background(palette, corner, kStride, 16 * at, 16 * (at + blocks), rows, to);
        });
        for (int r = 0; r < rows; ++r, ++y) {
            p.v = next_row(p.v);
            u8* line = corner + r * kStride;
            for (int n = 0; n < listed[y]; ++n) draw_sprite(k, list[y][n], y, line, 0, kWidth);
            for_runs(dirty[r], [&](int at, int blocks) {
                does.paint(palette, line, 16 * at, 16 * (at + blocks), k.screen.rgb, row(k.screen, y));
            });
        }
        p.v = take(p.v, p.t, kHorizontal);
    }
    list_sprites(p, first + count - 1);
}

/// Dots (from, to] of a visible line; dot c draws pixel c - 1.
void run_visible(Console& k, int y, int from, int to) {
    Ppu& p = k.state.ppu;
    if (from < kWidth) draw_span(k, y, from, std::min(to, kWidth));
    if (from < 257 && to >= 257 && p.show_background) p.v = next_row(p.v);
    if (from < 258 && to >= 258 && rendering(p)) p.v = take(p.v, p.t, kHorizontal);
    if (to == kDots) list_sprites(p, y);
}

/// Dots (from, to] of the pre-render line. Returns whether the frame ended.
bool run_prerender(Ppu& p, int from, int to) {
    if (from < 1) p.vblank = p.hit = 0;
    if (rendering(p)) {
        if (from < 258 && to >= 258) p.v = take(p.v, p.t, kHorizontal);
        if (from < 304 && to > 280) p.v = take(p.v, p.t, kVertical);
    }
    return to >= kDots - (!p.even && rendering(p));
}

/// The first dot of line y, from pixel `from` on, where sprite 0, shown there, meets the background; or 0.
/// `v` is the address at that pixel.
int hit_on_line(const Console& k, int y, u16 v, int from) {
    const Ppu& p = k.state.ppu;
    const Cartridge& c = *k.cartridge;
    u64 pixels = sprite_pixels(k, 0, y);
    for (int x = p.oam[3]; x < std::min(p.oam[3] + 8, kWidth); ++x, pixels >>= 8) {
        const bool hidden = x < 8 && (p.hide_left_sprites || p.hide_left_background);
        if (!(pixels & 3) || x < from || hidden) continue;
        const int column = (v & 31) + (p.fine_x + x) / 8 - (p.fine_x + from) / 8;
        const u8* table = p.vram + c.nametable[((v >> 10) & 3) ^ (column >> 5)];
        const int tile = (p.background_table << 8) + table[(v & 0x3E0) | (column & 31)];
        if (c.tiles[static_cast<std::size_t>(tile * 64 + (v >> 12 & 7) * 8 + ((p.fine_x + x) & 7))])
            return x + 1;
    }
    return 0;
}

i64 forecast_hit(const Console& k) {
    const Ppu& p = k.state.ppu;
    if (!rendering(p)) return kNever;
    const i64 at = p.done - p.origin - 1;
    int line = static_cast<int>(at / kDots);
    const int dot = static_cast<int>(at % kDots);
    u16 v = p.v;
    for (int n = 0; n < p.listed; ++n)
        if (p.list[n] == 0 && dot < kWidth)
            if (const int at = hit_on_line(k, line, v, dot)) return p.origin + i64{line} * kDots + at;
    if (dot < 257) v = next_row(v);
    if (dot < 258) v = take(v, p.t, kHorizontal);
    ++line;
    if (p.oam_addr >= 4) return kNever;
    const int top = p.oam[0] + 1, bottom = std::min(top + (p.tall ? 16 : 8), kHeight);
    for (; line < bottom; ++line, v = take(next_row(v), p.t, kHorizontal))
        if (line >= top)
            if (const int at = hit_on_line(k, line, v, 0)) return p.origin + i64{line} * kDots + at;
    return kNever;
}

/// What is written to memory, or to where that is.
void write_memory(Console& k, u16 addr, u8 value) {
    Ppu& p = k.state.ppu;
    switch (addr & 7) {
        case 3:
            p.oam_addr = value;
            break;
        case 4:
            p.oam[p.oam_addr++] = value;
            break;
        case 6:
            if (p.first_write) {
                p.t = static_cast<u16>((p.t & 0xFF) | (value & 0x3F) << 8);
            } else {
                p.v = p.t = static_cast<u16>((p.t & ~0xFF) | value);
            }
            p.first_write ^= 1;
            break;
        case 7:
            bus_write(k, p.v, value);
            p.v = static_cast<u16>(p.v + p.increment);
            break;
        default:
            break;
    }
}

}  // namespace

void sync(Console& k, i64 target) {
    Ppu& p = k.state.ppu;
    while (p.done < target) {
        const i64 at = p.done - p.origin - 1;
        const int line = static_cast<int>(at / kDots), from = static_cast<int>(at % kDots);
        const int to = static_cast<int>(std::min<i64>(kDots, from + (target - p.done)));
        if (line < kHeight) {
            const int lines = static_cast<int>(std::min<i64>((target - p.done) / kDots, kHeight - line));
            if (from == 0 && lines > 0 && rendering(p)) {
                draw_lines(k, line, lines);
                p.done += i64{lines} * kDots;
                continue;
            }
            run_visible(k, line, from, to);
        } else if (line == kVblankLine && from == 0) {
            p.vblank = 1;
        } else if (line == kLastLine && to == kDots) {
            p.even ^= 1;
        } else if (line == kPreLine) {
            const int last =
                std::min(to, from < kDots - 1 ? kDots - 1 : kDots);  // stop where a dot may be dropped
            p.done += last - from;
            if (run_prerender(p, from, last)) p.origin = p.done - 1;
            continue;
        }
        p.done += to - from;
    }
}

i64 status_changes(const Console& k) {
    const Ppu& p = k.state.ppu;
    const i64 at = p.done - p.origin - 1;
    const int line = static_cast<int>(at / kDots), dot = static_cast<int>(at % kDots);
    if (p.vblank) return 0;
    if (line >= kVblankLine && !(line == kVblankLine && dot == 0)) {
        const i64 clears = p.origin + i64{kPreLine} * kDots + 1;
        return p.hit && p.done <= clears ? clears : clears + kDots - 2;
    }
    const i64 rises = p.origin + i64{kVblankLine} * kDots + 1;
    return p.hit || line >= kPostLine ? rises : std::min(rises, forecast_hit(k));
}

u8 read(Console& k, u16 addr, i64 target) {
    Ppu& p = k.state.ppu;
    // In the picture only the hit of sprite 0 changes the status, and that is known without drawing.
    const bool foreseen =
        (addr & 7) == 2 && k.skip_idle_loops && target <= p.origin + i64{kPostLine} * kDots + 1;
    if (!foreseen)
        sync(k, target);
    else if (!p.hit && p.done < target)
        p.hit = forecast_hit(k) < target;
    switch (addr & 7) {
        case 2: {
            const u8 status = k.state.status = static_cast<u8>(p.hit << 6 | p.vblank << 7);
            p.vblank = 0;
            p.first_write = 1;
            return status;
        }
        case 4:
            return p.oam[p.oam_addr];
        case 7: {
            u8 data = bus_read(k, p.v);
            p.v = static_cast<u16>(p.v + p.increment);
            if (p.v < 0x3F00) std::swap(data, p.read_buffer);  // by the address behind the one read
            return data;
        }
        default:
            return 0;
    }
}

void write(Console& k, u16 addr, u8 value, i64 target) {
    Ppu& p = k.state.ppu;
    Registers r = p;
    switch (addr & 7) {
        case 0:
            p.nmi = value >> 7;
            p.increment = (value & 4) ? 32 : 1;
            r.tall = value >> 5 & 1;
            r.background_table = value >> 4 & 1;
            r.sprite_table = value >> 3 & 1;
            r.t = static_cast<u16>((p.t & ~0x0C00) | (value & 3) << 10);
            break;
        case 1:
            r.hide_left_background = !(value & 2);
            r.hide_left_sprites = !(value & 4);
            r.show_background = value >> 3 & 1;
            r.show_sprites = value >> 4 & 1;
            break;
        case 5:
            if (p.first_write) {
                r.t = static_cast<u16>((p.t & ~0x1F) | value >> 3);
                r.fine_x = value & 7;
            } else {
                r.t = static_cast<u16>((p.t & ~0x73E0) | (value & 7) << 12 | (value & 0xF8) << 2);
            }
            p.first_write ^= 1;
            break;
        default:
            return sync(k, target), write_memory(k, addr, value);
    }
    if (r == p && k.skip_idle_loops) return;
    sync(k, target);
    static_cast<Registers&>(p) = r;
}

void dma(Ppu& p, const u8* page) {
    const int room = 256 - p.oam_addr;
    std::memcpy(p.oam + p.oam_addr, page, static_cast<std::size_t>(room));
    std::memcpy(p.oam, page + room, p.oam_addr);
}

}  // namespace wz::compat::ppu
