#pragma once
#include "nes/types.hpp"

namespace wz::ppu {

/// The lower four bytes of two words in turn, those of `even` first.
inline u64 interleave(u64 even, u64 odd) {
    auto spread = [](u64 v) {
        v &= 0xFFFFFFFF;
        v = (v | v << 16) & 0x0000FFFF0000FFFFull;
        return (v | v << 8) & 0x00FF00FF00FF00FFull;
    };
    return spread(even) | spread(odd) << 8;
}

/// The names and palettes of the tiles on a line, from the address of the first on.
struct TilesOnLine {
    static constexpr int kPairs = 17;  ///< pairs of tiles that reach over a whole line
    /// The nametable's row, the other's, and the first tiles of the first again.
    u8 row[32 + 32 + 8];
    /// Two columns share a slot.
    u8 slot[16 + 16 + 2];
    int column;  ///< of the first tile in `row`

    /// `here` is the nametable of address v, `next` the one beside it.
    TilesOnLine(const u8* here, const u8* next, u16 v) : column(v & 31) {
        std::memcpy(row, here + (v & 0x3E0), 32);
        std::memcpy(row + 32, next + (v & 0x3E0), 32);
        std::memcpy(row + 64, row, 8);
        // A byte of attributes has those of four columns, for two rows of tiles.
        const int attribute_row = 0x3C0 | ((v >> 4) & 0x38), shift = (v >> 4) & 4;
        auto expand = [&](const u8* from, u8* to) {
            const u64 pairs_of_four = load64(from + attribute_row) >> shift;
            store64(to, interleave(pairs_of_four << 2 & splat(12), pairs_of_four & splat(12)));
            store64(to + 8, interleave(pairs_of_four >> 30 & splat(12), pairs_of_four >> 32 & splat(12)));
        };
        expand(here, slot);
        expand(next, slot + 16);
        slot[32] = slot[33] = slot[0];
    }
    u8* names() { return row + column; }
    const u8* names() const { return row + column; }
    const u8* slots() const { return slot + column / 2; }
    int odd() const { return column & 1; }
};

}  // namespace wz::ppu
