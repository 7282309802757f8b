#pragma once
#include "nes/ppu.hpp"

/// Many steps of the address register at once.
namespace wz::ppu {

/// `next_column` so many times, or `previous_column` where `columns` is negative.
inline u16 columns_right(u16 v, int columns) {
    const int x = (v & 31) + columns;
    return static_cast<u16>(((v & ~31) | (x & 31)) ^ ((x & 32) << 5));
}

/// `next_row` so many times.
inline u16 rows_down(u16 v, int rows) {
    const int from = ((v >> 2) & 0xF8) | v >> 12;
    int y = from + rows;
    v &= 0x0C1F;
    // Lines 240 to 255 lie below the nametable: behind them its own first line comes.
    const bool stays_below = from >= 240 && y < 256;
    if (from >= 240 && y >= 256) y -= 256;
    if (!stays_below)
        for (; y >= 240; y -= 240) v ^= 0x800;
    return static_cast<u16>(v | (y & 7) << 12 | (y >> 3) << 5);
}

}  // namespace wz::ppu
