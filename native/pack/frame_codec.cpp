#include "pack/frame_codec.hpp"

#include <algorithm>
#include <bit>

#include "simd/kernels.hpp"

namespace wz::frame_codec {

static_assert(std::endian::native == std::endian::little, "bit k of a word's mask is its byte k");

Distances distances(std::size_t width) {
    constexpr std::size_t kWord = 8;
    const auto at_least_a_word = [](std::size_t n) { return (kWord + n - 1) / n * n; };
    width = std::max<std::size_t>(width, 1);
    return {at_least_a_word(width), at_least_a_word(std::max<std::size_t>(width / 4, 1))};
}

std::size_t most(std::size_t size) {
    using K = simd::Kernels;
    return (size + K::kPackedBlock - 1) / K::kPackedBlock * K::kMostOfPackedBlock + 8;
}

std::size_t compress(const u8* in, std::size_t size, Distances distances, u8* out) {
    return simd::kernels().pack_frame(in, size, distances.row, distances.columns, out);
}

bool decompress(const u8* in, std::size_t in_size, Distances distances, u8* out, std::size_t out_size) {
    return simd::kernels().unpack_frame(in, in_size, distances.row, distances.columns, out, out_size);
}

}  // namespace wz::frame_codec
