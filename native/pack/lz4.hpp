#pragma once
#include <cstddef>

#include "nes/types.hpp"

/// The block format of LZ4, without its frame: https://github.com/lz4/lz4/blob/dev/doc/lz4_Block_format.md
namespace wz::lz4 {

/// The most bytes that `size` bytes can become.
constexpr std::size_t most(std::size_t size) { return size + size / 255 + 16; }

/// Compresses to `out`, which has room for most(size) bytes; gives the bytes written.
std::size_t compress(const u8* in, std::size_t size, u8* out);

/// Fills all of `out`; false if the bytes are not a block of exactly that size. Any bytes may be given.
bool decompress(const u8* in, std::size_t in_size, u8* out, std::size_t out_size);

}  // namespace wz::lz4
