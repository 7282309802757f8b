#include "nes/ppu.hpp"

#include <algorithm>

#include "compat/console.hpp"
#include "nes/palette.hpp"
#include "nes/ppu_sprites.hpp"
#include "nes/ppu_tiles.hpp"

namespace wz::compat::ppu {
namespace {

using wz::ppu::kHorizontal;
using wz::ppu::kVertical;
using wz::ppu::next_column;
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
    int row = (y - static_cast<u8>(o[0] + 1)) % height;
    if (o[2] & 0x80) row ^= height - 1;
    u16 addr;
    if (p.tall) {
        row = (row & 7) | (row & 8) << 1;
        addr = static_cast<u16>(((o[1] >> 1) * 32 + row) | (o[1] & 1) << 12);
    } else {
        addr = static_cast<u16>(o[1] * 16 + row + (p.sprite_table ? 0x1000 : 0));
    }
    const u64 pixels = spread(bus_read(k, addr)) | spread(bus_read(k, static_cast<u16>(addr + 8))) << 1;
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

/// What the screen shows, if that is kept; forgotten when the screen or the colours are others.
Shown* shown_on(Console& k) {
    Shown* const s = k.shown.get();
    const u8* const palette = k.state.ppu.palette;
    if (s && (s->pixels != k.screen.pixels || std::memcmp(s->palette, palette, sizeof s->palette) != 0)) {
        s->pixels = k.screen.pixels;
        std::memcpy(s->palette, palette, sizeof s->palette);
        s->forget();
    }
    return s;
}

/// Pixels [from, to) of line y: v walks as it goes.
void draw_span(Console& k, int y, int from, int to) {
    Ppu& p = k.state.ppu;
    alignas(64) u8 buffer[kStride] = {};
    u8* line = buffer + kMargin;
    if (p.show_background) {
        const Cartridge& c = *k.cartridge;
        for (int x = from - ((p.fine_x + from) & 7); x < to;) {
            const u8* table = p.vram + c.nametable[p.v >> 10 & 3];
            const int attribute =
                table[0x3C0 | ((p.v >> 4) & 0x38) | ((p.v >> 2) & 7)] >> (((p.v >> 4) & 4) | (p.v & 2)) & 3;
            const u8* tile =
                c.tiles.data() + ((p.background_table << 8) + table[p.v & 0x3FF]) * 64 + (p.v >> 12 & 7) * 8;
            store64(line + x, load64(tile) | splat(static_cast<u8>(attribute << 2)));
            x += 8;
            if (x <= to) p.v = next_column(p.v);
        }
        if (p.hide_left_background) store64(line, 0);
    }
    if (p.show_sprites)
        for (int n = 0; n < p.listed; ++n)
            if (const int x = p.oam[p.list[n] * 4 + 3]; x < to && x + 8 > from)
                draw_sprite(k, p.list[n], y, line, from, to);
    if (Shown* shown = shown_on(k)) shown->painter[y] = Shown::kUnknown;
    simd::kernels().paint(colours(k), line, from, to, k.screen.rgb, row(k.screen, y));
}

TilesOnLine tiles_at(const Console& k, u16 v) {
    const u8* const vram = k.state.ppu.vram;
    const auto& nametable = k.cartridge->nametable;
    return {vram + nametable[(v >> 10) & 3], vram + nametable[((v >> 10) & 3) ^ 1], v};
}

/// The lines of tile 0 from that of v on.
const u8* first_tile(const Console& k, u16 v) {
    return k.cartridge->tiles.data() + ((k.state.ppu.background_table << 8) * 8 + (v >> 12 & 7)) * 8;
}

/// The top `rows` lines of the tiles from v on, as palette slots.
void draw_tiles(const Console& k, u8* line, u16 v, const TilesOnLine& tiles, int rows) {
    static constexpr u8 kSlots[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    simd::kernels().draw_tiles({first_tile(k, v), tiles.names(), tiles.slots(), tiles.odd(), kSlots},
                               TilesOnLine::kPairs, rows, line - k.state.ppu.fine_x, kStride);
}

/// Everything that the pixels of these tiles depend on, but for the colours.
Shown::Row row_of(const Console& k, u16 v, const TilesOnLine& tiles, int rows) {
    constexpr std::size_t kNames = 2 * TilesOnLine::kPairs, kSlots = TilesOnLine::kPairs + 1;
    const Ppu& p = k.state.ppu;
    Shown::Row row{};
    std::memcpy(row.data(), tiles.names(), kNames);
    std::memcpy(row.data() + kNames, tiles.slots(), kSlots);
    u8* rest = row.data() + kNames + kSlots;
    *rest++ = static_cast<u8>(v >> 12 & 7);
    *rest++ = static_cast<u8>(rows);
    *rest++ = static_cast<u8>(p.background_table << 1 | p.hide_left_background);
    // A clear sky is the same wherever the screen has scrolled to.
    const u8* const tile = first_tile(k, v) + row[0] * 64;
    const bool clear = std::memcmp(row.data(), row.data() + 1, kNames - 1) == 0 &&
                       std::memcmp(row.data() + kNames, row.data() + kNames + 1, kSlots - 1) == 0 &&
                       std::memcmp(tile, tile + 1, static_cast<std::size_t>(rows) * 8 - 1) == 0;
    *rest = clear ? 0xFF : static_cast<u8>(p.fine_x << 1 | tiles.odd());
    return row;
}

/// Whole lines [first, first + count) with background and sprites shown and nothing written meanwhile.
void draw_lines(Console& k, int first, int count) {
    Ppu& p = k.state.ppu;
    const Colours& palette = colours(k);
    Shown* const shown = shown_on(k);
    const simd::Kernels& does = simd::kernels();
    // Which sprites each line shows; the first line's were listed before.
    const int range = p.tall ? 16 : 8;
    u8 listed[kHeight + 1] = {}, list[kHeight + 1][8];
    for (u64 found = sprites_between(p, first + 1 - range, first + count - 1); found; found &= found - 1) {
        const int i = __builtin_ctzll(found), top = p.oam[i * 4] + 1;
        for (int y = std::max(top, first + 1); y < std::min(top + range, first + count); ++y)
            if (listed[y] < 8) list[y][listed[y]++] = static_cast<u8>(i);
    }
    listed[first] = p.listed;
    std::memcpy(list[first], p.list, 8);
    alignas(64) u8 buffer[8 * kStride];
    for (int y = first; y < first + count;) {
        // The first line starts where v is, the others where t says.
        const bool follows = !((p.v ^ p.t) & kHorizontal);
        const int rows = follows ? std::min(8 - (p.v >> 12 & 7), first + count - y) : 1;
        const int top = y;
        const u16 v = p.v;
        const TilesOnLine tiles = tiles_at(k, v);
        bool same = false, drawn = false;
        if (shown) {
            const Shown::Row now = row_of(k, v, tiles, rows);
            same = now == shown->rows[top];
            shown->rows[top] = now;
            if (same && rows == 8 && !load64(listed + y) &&
                load64(shown->painter + y) == splat(static_cast<u8>(top))) {
                y += rows;
                p.v = take(next_row(v | 7 << 12), p.t, kHorizontal);
                continue;
            }
        }
        for (int r = 0; r < rows; ++r, ++y) {
            p.v = next_row(p.v);
            if (same && !listed[y] && shown->painter[y] == top) continue;
            if (!drawn) draw_tiles(k, buffer + kMargin, v, tiles, rows);
            drawn = true;
            u8* line = buffer + kMargin + r * kStride;
            if (p.hide_left_background) store64(line, 0);
            for (int n = 0; n < listed[y]; ++n) draw_sprite(k, list[y][n], y, line, 0, kWidth);
            does.paint(palette, line, 0, kWidth, k.screen.rgb, row(k.screen, y));
            if (shown) shown->painter[y] = listed[y] ? Shown::kUnknown : static_cast<u8>(top);
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

i64 forecast_hit(const Console& k, int line, int dot) {
    const Ppu& p = k.state.ppu;
    if (!rendering(p)) return kNever;
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
    return p.hit || line >= kPostLine ? rises : std::min(rises, forecast_hit(k, line, dot));
}

u8 read(Console& k, u16 addr) {
    Ppu& p = k.state.ppu;
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

void write(Console& k, u16 addr, u8 value) {
    Ppu& p = k.state.ppu;
    switch (addr & 7) {
        case 0:
            p.nmi = value >> 7;
            p.tall = value >> 5 & 1;
            p.background_table = value >> 4 & 1;
            p.sprite_table = value >> 3 & 1;
            p.increment = (value & 4) ? 32 : 1;
            p.t = static_cast<u16>((p.t & ~0x0C00) | (value & 3) << 10);
            break;
        case 1:
            p.hide_left_background = !(value & 2);
            p.hide_left_sprites = !(value & 4);
            p.show_background = value >> 3 & 1;
            p.show_sprites = value >> 4 & 1;
            break;
        case 3:
            p.oam_addr = value;
            break;
        case 4:
            p.oam[p.oam_addr++] = value;
            break;
        case 5:
            if (p.first_write) {
                p.t = static_cast<u16>((p.t & ~0x1F) | value >> 3);
                p.fine_x = value & 7;
            } else {
                p.t = static_cast<u16>((p.t & ~0x73E0) | (value & 7) << 12 | (value & 0xF8) << 2);
            }
            p.first_write ^= 1;
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

void dma(Ppu& p, const u8* page) {
    const int room = 256 - p.oam_addr;
    std::memcpy(p.oam + p.oam_addr, page, static_cast<std::size_t>(room));
    std::memcpy(p.oam, page + room, p.oam_addr);
}

}  // namespace wz::compat::ppu
