#include "compat/console.hpp"

namespace wz::compat {

u16 Shown::put(int top, const Row& row, const Game& game) {
    if (std::memcmp(&row, &rows[top], sizeof row) == 0) return 0;
    rows[top] = row;
    // What each tile shows, those with an even number first.
    u8 shows[2][17];
    const auto* const flat_tile = game.flat.data() + (row.table << 8);
    for (int i = 0; i < 17; ++i) {
        shows[0][i] = flat_tile[row.names[2 * i]][row.slots[i] >> 2];
        shows[1][i] = flat_tile[row.names[2 * i + 1]][row.slots[i + row.odd] >> 2];
    }
    Blocks now, second, third;  // a block reaches into a third tile unless the row is aligned
    std::memcpy(&now, shows[0], sizeof now);
    std::memcpy(&second, shows[1], sizeof second);
    std::memcpy(&third, shows[0] + (row.fine_x ? 1 : 0), sizeof third);
    now |= (Blocks)(now != second) | (Blocks)(now != third);
    if (row.hidden) now[0] = 0xFF;
    const u16 changed = bits_of((Blocks)(now != flat[top]) | (Blocks)(now == 0xFF));
    flat[top] = now;
    plain[top] = static_cast<u16>(~bits_of((Blocks)(now == 0xFF)));
    return changed;
}

void Shown::recolour(const u8* now) {
    // The first entries of the other palettes are never shown, and where sprites are is stale anyhow.
    bool changed[4];
    for (int i = 0; i < 4; ++i) changed[i] = std::memcmp(palette + 4 * i + 1, now + 4 * i + 1, 3) != 0;
    if (palette[0] != now[0]) forget();
    std::memcpy(palette, now, sizeof palette);
    u16 of_row = 0;
    for (int y = 0, row = kUnknown; y < kHeight; ++y) {
        if (painter[y] == kUnknown) continue;
        if (row != painter[y]) {
            row = painter[y];
            of_row = 0;
            const u8* const slots = rows[row].slots;
            for (int b = 0; b < 16; ++b)
                if (flat[row][b] != 0 && (changed[slots[b] >> 2] || changed[slots[b + 1] >> 2]))
                    of_row |= static_cast<u16>(1 << b);
        }
        stale[y] |= of_row;
    }
}

}  // namespace wz::compat
