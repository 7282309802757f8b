#pragma once
#include "nes/ppu_sprites.hpp"

namespace wz::ppu {

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

/// What the 32 palette entries look like in `out`: entry 0 behind everything. Valid until the next call.
const u8* output_values(const Ppu& p, Frame& out);

/// With rendering off: dots [from, to) of the frame.
void fill_backdrop(const Ppu& p, Frame& out, i64 from, i64 to);

/// Pixels [left, right) of line y, with everything as it is now for the whole of them. `start` is the address
/// of the line's first tile.
void draw_span(const Ppu& p, const Cartridge& c, Frame& out, int y, u16 start, int left, int right);

}  // namespace wz::ppu
