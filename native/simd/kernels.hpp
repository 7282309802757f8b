#pragma once
#include <cstddef>

#include "nes/types.hpp"

namespace wz::simd {

/// How the columns of a picture are weighed: output i is the sum of four values from `first[i]` on, each
/// times its weight, divided by `divisor` and rounded half up.
struct Columns {
    int width;    ///< outputs
    int divisor;  ///< at most 4096; the weights times the largest value add up to at most 255 times this
    float scale;  ///< 1 / divisor
    const u16* first;
    const u16* weights;  ///< [output][4]
    /// The same for sixteen outputs at a time, taps in pairs, as a processor that permutes whole vectors
    /// wants them.
    struct Lanes {
        static constexpr int kColumns = 64;
        int first;  ///< the first of the kColumns input columns, all of which exist
        /// Of input column `first + c`: sums are made of bytes 0 to 7 of every sixteen, then of 8 to 15.
        static constexpr u16 index_of(int c) {
            return static_cast<u16>((c & 8 ? kColumns / 2 : 0) + c / 16 * 8 + c % 8);
        }
        alignas(64) u16 index[2][32];
        alignas(64) u16 weight[2][32];
    };
    const Lanes* lanes;  ///< ceil(width / 16); null where sixteen outputs touch more than 64 inputs
    /// The same for four outputs at a time, for a processor that looks up bytes and adds up products of four:
    /// where their taps are among sixteen input columns, and the weights.
    struct Quad {
        alignas(16) u8 index[16];
        alignas(16) u8 weight[16];
        int first;  ///< the first of the input columns, all of which exist
    };
    const Quad* quads;  ///< width / 4; null where four outputs touch more inputs, or the width has a rest
};

/// The lines of a picture that an output row is made of, and their weights, which add up to at most 128.
struct Lines {
    const u8* at[4];  ///< all of them exist, also those of weight zero
    u16 weight[4];
};

/// 32 palette entries as colours: as words 0x00RRGGBB, and channel by channel.
struct Colours {
    alignas(64) u32 words[32] = {};
    alignas(16) u8 red[32] = {}, green[32] = {}, blue[32] = {};
};

/// The vector loops of drawing and of shrinking, once for each instruction set. All give the same bytes.
struct Kernels {
    static constexpr int kWidth = 256;

    /// A row of tiles side by side. Tile i is number names[i]; its palette is slots[(i + odd) / 2].
    struct Tiles {
        const u8* first;  ///< of tile 0: a tile is 64 bytes, its lines 8 pixels of 0..3 one behind the other
        const u8* names;
        const u8* slots;   ///< 0, 4, 8 or 12
        int odd;           ///< 0 or 1
        const u8* values;  ///< a pixel becomes values[slot + pixel]
    };
    /// Puts `rows` (at most 8) lines of 2 * `pairs` tiles at `line`, lines `stride` bytes apart. Reads 64
    /// bytes a tile if `rows` is 8.
    void (*draw_tiles)(const Tiles& t, int pairs, int rows, u8* line, int stride);
    /// out[i] = table[in[i] & 63]. `count` is a multiple of 64; `in` and `out` may be the same.
    void (*map_bytes)(const u8* in, u8* out, int count, const u8* table);
    /// Output rows, at most kRows, one behind the other at `out`: the weighed sum of each row's lines for
    /// kWidth columns, then the columns are weighed.
    void (*shrink)(const Lines* rows, int count, const Columns& columns, u8* out);
    static constexpr int kRows = 8;
    /// out[x] = the larger of a[x] and b[x], for kWidth columns.
    void (*brighter)(const u8* a, const u8* b, u8* out);
    /// Pixels [from, to) of a line of palette slots, by their low five bits, in `row`: bytes red, green,
    /// blue, or words. Reads up to 15 slots behind them.
    void (*paint)(const Colours& colours, const u8* slots, int from, int to, bool rgb, u8* row);
    /// The same as bytes, for `rows` lines of slots below 16, which are `stride` apart; those of `out` are a
    /// line of pixels apart. `from` and `to` are multiples of 16.
    void (*paint_background)(const Colours& colours, const u8* slots, int stride, int from, int to, int rows,
                             u8* out);
    /// A frame compressed as native/pack/frame_codec.hpp says, with the distances in bytes (at least eight)
    /// at which it is compared with itself; gives the bytes written. Each block of kPackedBlock bytes becomes
    /// at most kMostOfPackedBlock, and eight bytes behind the last may be written too.
    std::size_t (*pack_frame)(const u8* in, std::size_t size, std::size_t row, std::size_t columns, u8* out);
    /// Fills all of `out`; false if the bytes are not those of a frame of that size. Any bytes may be given.
    bool (*unpack_frame)(const u8* in, std::size_t in_size, std::size_t row, std::size_t columns, u8* out,
                         std::size_t out_size);
    static constexpr std::size_t kPackedBlock = 64, kMostOfPackedBlock = 2 + 8 * 9;
};

/// Those of the chosen set (simd/sets.hpp). Throws SetError on the first call.
const Kernels& kernels();
/// Those of a set by its name; null where there is none.
const Kernels* find_kernels(const char* set);

}  // namespace wz::simd
