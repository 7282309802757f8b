#pragma once
#include <cstddef>

#include "nes/types.hpp"

/// Compresses frames without loss, in about the time that it takes to copy them a few times.
///
/// Frames are made of flat areas and of tiles that repeat. So a byte is mostly equal to the one a row before
/// it, or to the one that many columns before it after which tiles repeat. Eight bytes at a time are compared
/// with both, and only what differs from the better one is kept:
///
///     block of 64 bytes   changed: a bit for each word of 8 bytes that is not equal to the one a row before;
///                         if any is, across: a bit for each of these that is compared with earlier columns
///                         instead
///     of changed words    first for each of them a bit for each byte that is not equal, then all of these
///     bytes
///
/// Before the first row, and before the first columns of it, everything is 0.
namespace wz::frame_codec {

/// How many bytes before a word lies what it is compared with. At least eight.
struct Distances {
    std::size_t row, columns;
};

/// For frames so many pixels wide. Tiles repeat after a quarter of the screen: 64 of its 256 columns.
Distances distances(std::size_t width);

/// The most bytes that `size` bytes can become; `compress` may write to all of them.
std::size_t most(std::size_t size);

/// Compresses to `out`, which has room for most(size) bytes; gives how many it needed.
std::size_t compress(const u8* in, std::size_t size, Distances distances, u8* out);

/// Fills all of `out`; false if the bytes are not those of a frame of exactly that size. Any bytes may be
/// given.
bool decompress(const u8* in, std::size_t in_size, Distances distances, u8* out, std::size_t out_size);

}  // namespace wz::frame_codec
