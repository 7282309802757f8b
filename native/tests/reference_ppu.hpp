#pragma once
// The slow console's picture unit.
#include <array>
#include <cstring>

#include "reference_cpu.hpp"

namespace reference {

/// The picture unit, dot by dot. Background tiles are fetched as one at the eighth dot of their slot, and a
/// line's sprites are chosen at the end of the line before.
struct Ppu {
    const u8* chr;
    std::array<u16, 4> nametable;
    int lines = 262;
    bool drops_dot = true;

    u8 ctrl = 0, mask = 0, mask_next = 0, oam_addr = 0, fine_x = 0, toggle = 0, buffer = 0;
    bool mask_pending = false;
    bool vblank = false, vblank_lost = false, hit = false, overflow = false, odd = false;
    u16 v = 0, t = 0;
    u16 low = 0, high = 0, attr_low = 0, attr_high = 0;
    u8 palette[32] = {}, oam[256] = {}, vram[0x1000] = {};
    u8 bus = 0;
    u32 bus_age[8] = {};
    int line = 0, dot = 0;
    i64 dots = 0;
    u32 frame = 0;         ///< vertical blanks seen
    u8 sprites[256] = {};  ///< slot | 0x20 behind | 0x40 sprite zero
    u8 pixels[240][256] = {};
    u8 emphasis[240] = {};
    /// Drawing was switched on within the line or at the end of the one before: what it shows then hangs on
    /// bits left over in the shift registers, and consoles differ.
    bool unsure[240] = {};

    bool rendering() const { return mask & 0x18; }
    u8& name_byte(u16 addr) { return vram[nametable[(addr >> 10) & 3] + (addr & 0x3FF)]; }

    void coarse_x() {
        if ((v & 31) == 31)
            v = static_cast<u16>((v & ~31) ^ 0x400);
        else
            ++v;
    }
    void fine_y() {
        if ((v & 0x7000) != 0x7000) {
            v = static_cast<u16>(v + 0x1000);
            return;
        }
        v = static_cast<u16>(v & ~0x7000);
        int y = (v & 0x3E0) >> 5;
        if (y == 29) {
            y = 0;
            v ^= 0x800;
        } else {
            y = (y + 1) & 31;
        }
        v = static_cast<u16>((v & ~0x3E0) | y << 5);
    }
    void load_tile() {
        const u8 tile = name_byte(v & 0xFFF);
        const u8 attr = name_byte(static_cast<u16>(0x3C0 | (v & 0xC00) | ((v >> 4) & 0x38) | ((v >> 2) & 7)));
        const int at = ((ctrl & 0x10) ? 0x1000 : 0) + tile * 16 + (v >> 12);
        const int colour = attr >> (((v >> 4) & 4) | (v & 2)) & 3;
        low = static_cast<u16>((low & 0xFF00) | chr[at]);
        high = static_cast<u16>((high & 0xFF00) | chr[at + 8]);
        attr_low = static_cast<u16>((attr_low & 0xFF00) | ((colour & 1) ? 255 : 0));
        attr_high = static_cast<u16>((attr_high & 0xFF00) | ((colour & 2) ? 255 : 0));
        coarse_x();
    }
    void shift() {
        low = static_cast<u16>(low << 1);
        high = static_cast<u16>(high << 1);
        attr_low = static_cast<u16>(attr_low << 1);
        attr_high = static_cast<u16>(attr_high << 1);
    }

    /// Sprite evaluation of dots 65 to 256, one OAM read and one decision every two dots.
    int n = 0, m = 0, found = 0;
    bool evaluated = false;
    void evaluate(int at_dot) {
        if (at_dot == 65) n = m = found = 0, evaluated = false;
        if ((at_dot & 1) || evaluated) return;
        const int height = (ctrl & 0x20) ? 16 : 8;
        const u8 byte = oam[n * 4 + m];
        const bool in_range = line >= byte && line < byte + height;
        if (found < 8) {
            if (m == 0) {
                if (in_range)
                    m = 1;
                else
                    ++n;
            } else if (++m == 4) {
                m = 0;
                ++n;
                ++found;
            }
        } else if (in_range) {
            overflow = true;
            evaluated = true;
        } else {
            ++n;
            m = (m + 1) & 3;
        }
        if (n == 64) evaluated = true;
    }
    void choose_sprites() {
        std::memset(sprites, 0, sizeof sprites);
        const int height = (ctrl & 0x20) ? 16 : 8;
        int taken = 0;
        for (int i = 0; i < 64 && taken < 8; ++i) {
            const u8* o = oam + i * 4;
            int row = line - o[0];
            if (row < 0 || row >= height) continue;
            ++taken;
            if (o[2] & 0x80) row = height - 1 - row;
            int at = height == 16 ? (o[1] & 1) * 0x1000 + (o[1] & 0xFE) * 16 + (row & 8) * 2 + (row & 7)
                                  : ((ctrl & 8) ? 0x1000 : 0) + o[1] * 16 + row;
            for (int k = 0; k < 8; ++k) {
                const int bit = (o[2] & 0x40) ? k : 7 - k;
                const int colour = (chr[at] >> bit & 1) | (chr[at + 8] >> bit & 1) << 1;
                if (colour == 0 || o[3] + k > 255 || sprites[o[3] + k]) continue;
                sprites[o[3] + k] =
                    static_cast<u8>(16 | (o[2] & 3) << 2 | colour | (o[2] & 0x20) | (i == 0 ? 0x40 : 0));
            }
        }
    }

    void pixel() {
        const int px = dot - 1;
        emphasis[line] = mask >> 5;
        const u8 keep = (mask & 1) ? 0x30 : 0x3F;
        if (!rendering()) {
            const u8 entry = (v & 0x3F00) == 0x3F00 ? colour(v) : palette[0];
            pixels[line][px] = entry & keep;
            return;
        }
        int back = 0, front = 0;
        if ((mask & 8) && (px >= 8 || (mask & 2))) {
            const int bit = 15 - fine_x;
            back = (low >> bit & 1) | (high >> bit & 1) << 1 | (attr_low >> bit & 1) << 2 |
                   (attr_high >> bit & 1) << 3;
        }
        if ((mask & 16) && (px >= 8 || (mask & 4))) front = sprites[px];
        const bool solid = back & 3;
        if ((front & 0x40) && solid && px != 255) hit = true;
        int slot = 0;
        if (front && !(solid && (front & 0x20)))
            slot = front & 31;
        else if (solid)
            slot = back;
        pixels[line][px] = palette[slot] & keep;
    }

    void tick() {
        const bool prerender = line == lines - 1;
        if (line < 240 && dot >= 1 && dot <= 256) {
            pixel();
            if (rendering() && dot >= 65) evaluate(dot);
        }
        if ((line < 240 || prerender) && rendering()) {
            const bool fetches = (dot >= 1 && dot <= 256) || (dot >= 321 && dot <= 336);
            if (fetches) {
                shift();
                if (dot % 8 == 0) load_tile();
            }
            if (dot == 256) fine_y();
            if (dot == 257) v = static_cast<u16>((v & ~0x41F) | (t & 0x41F));
            if (dot >= 257 && dot <= 320) oam_addr = 0;
            if (prerender && dot >= 280 && dot <= 304) v = static_cast<u16>((v & ~0x7BE0) | (t & 0x7BE0));
        }
        if (line == 241 && dot == 1) {
            if (!vblank_lost) vblank = true;
            vblank_lost = false;
            ++frame;
        }
        if (prerender && dot == 1) {
            vblank = hit = overflow = false;
            std::memset(unsure, 0, sizeof unsure);
        }
        ++dots;
        const bool dropped = prerender && dot == 339 && odd && drops_dot && rendering();
        if (dot == 320) {
            if (line < 239 && rendering())
                choose_sprites();
            else
                std::memset(sprites, 0, sizeof sprites);
        }
        dot += dropped ? 2 : 1;
        if (dot == 341) {
            dot = 0;
            if (++line == lines) {
                line = 0;
                odd = !odd;
            }
        }
        if (mask_pending) {
            if (!rendering() && (mask_next & 0x18)) {
                if (line < 240) unsure[line] = true;
                if (dot > 256 && line < 239) unsure[line + 1] = true;
                if (dot > 256 && line == lines - 1) unsure[0] = true;
            }
            mask = mask_next;
            mask_pending = false;
        }
    }

    void drive(u8 value, u8 bits = 255) {
        bus = static_cast<u8>((bus & ~bits) | (value & bits));
        for (int i = 0; i < 8; ++i)
            if (bits >> i & 1) bus_age[i] = frame;
    }
    u8 open() const {
        u8 r = 0;
        for (int i = 0; i < 8; ++i)
            if (frame - bus_age[i] < 36) r = static_cast<u8>(r | (bus & 1 << i));
        return r;
    }
    u8& colour(u16 addr) { return palette[(addr & 3) ? addr & 31 : addr & 15]; }
    void bump() {
        if (rendering() && (line < 240 || line == lines - 1)) {
            coarse_x();
            fine_y();
        } else {
            v = static_cast<u16>((v + ((ctrl & 4) ? 32 : 1)) & 0x7FFF);
        }
    }
    u8 read(u16 addr) {
        switch (addr & 7) {
            case 2: {
                const u8 r = static_cast<u8>(vblank << 7 | hit << 6 | overflow << 5);
                drive(r, 0xE0);
                toggle = 0;
                vblank = false;
                if (line == 241 && dot == 1) vblank_lost = true;
                return static_cast<u8>(r | (open() & 0x1F));
            }
            case 4: {
                const bool clearing = rendering() && line < 240 && dot >= 1 && dot <= 64;
                drive(clearing ? 255 : oam[oam_addr]);
                return bus;
            }
            case 7: {
                const u16 at = v & 0x3FFF;
                if (at >= 0x3F00) {
                    const u8 r = static_cast<u8>((colour(at) & ((mask & 1) ? 0x30 : 0x3F)) | (open() & 0xC0));
                    drive(r, 0x3F);
                    buffer = name_byte(at);
                    bump();
                    return r;
                }
                const u8 r = buffer;
                drive(r);
                buffer = at >= 0x2000 ? name_byte(at) : chr[at];
                bump();
                return r;
            }
            default:
                return open();
        }
    }
    void write(u16 addr, u8 value) {
        drive(value);
        switch (addr & 7) {
            case 0:
                ctrl = value;
                t = static_cast<u16>((t & ~0xC00) | (value & 3) << 10);
                break;
            case 1:
                mask_next = value;
                mask_pending = true;
                break;
            case 3:
                oam_addr = value;
                break;
            case 4:
                if (rendering() && (line < 240 || line == lines - 1)) {
                    oam_addr = static_cast<u8>(oam_addr + 4);
                } else {
                    oam[oam_addr] = (oam_addr & 3) == 2 ? value & 0xE3 : value;
                    ++oam_addr;
                }
                break;
            case 5:
                if (!toggle) {
                    fine_x = value & 7;
                    t = static_cast<u16>((t & ~31) | value >> 3);
                } else {
                    t = static_cast<u16>((t & 0x0C1F) | (value & 7) << 12 | (value >> 3) << 5);
                }
                toggle ^= 1;
                break;
            case 6:
                if (!toggle) {
                    t = static_cast<u16>((t & 0xFF) | (value & 0x3F) << 8);
                } else {
                    t = static_cast<u16>((t & 0x7F00) | value);
                    v = t;
                }
                toggle ^= 1;
                break;
            case 7: {
                const u16 at = v & 0x3FFF;
                if (at >= 0x3F00)
                    colour(at) = value & 0x3F;
                else if (at >= 0x2000)
                    name_byte(at) = value;
                bump();
                break;
            }
            default:
                break;
        }
    }
};

}  // namespace reference
