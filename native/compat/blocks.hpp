#pragma once
#include "compat/console.hpp"

namespace wz::compat {

/// Calls does(block, count) for every run of blocks.
template <class Does>
void for_runs(u32 blocks, Does does) {
    for (int at = 0; blocks;) {
        const int skip = __builtin_ctz(blocks), count = __builtin_ctz(~(blocks >> skip));
        at += skip;
        does(at, count);
        at += count;
        blocks >>= skip + count;
    }
}

/// Blocks of lines from `corner` on that show one slot each.
inline void fill(const Colours& colours, const Shown::Blocks& slots, u32 blocks, int lines, u8* corner) {
    // The compiler copies memory of other types by general registers, in smaller parts.
    using Part = u8 __attribute__((vector_size(16), aligned(1), may_alias));
    while (blocks) {
        const u8 slot = slots[__builtin_ctz(blocks)];
        const u32 same = blocks & Shown::bits_of((Shown::Blocks)(slots == slot));
        blocks &= ~same;
        const Part* const block = reinterpret_cast<const Part*>(colours.blocks[slot]);
        const Part parts[3] = {block[0], block[1], block[2]};
        auto put = [&](u8* out, int count) {
            Part* to = reinterpret_cast<Part*>(out);
            for (Part* const end = to + 3 * count; to < end; to += 3)
                to[0] = parts[0], to[1] = parts[1], to[2] = parts[2];
        };
        if (same == Shown::kEverywhere)
            put(corner, 16 * lines);
        else
            for_runs(same, [&](int at, int count) {
                for (int r = 0; r < lines; ++r) put(corner + r * 3 * kWidth + 48 * at, count);
            });
    }
}

}  // namespace wz::compat
