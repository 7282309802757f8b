#include "pack/packer.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <stdexcept>

#include "pack/lz4.hpp"

namespace wz {
namespace {

/// Frames look alike: sixteen of 84 x 84 compress a little better together than one by one. Larger pieces
/// gain nothing more.
constexpr std::size_t kPiece = 16 * 84 * 84, kRoom = lz4::most(kPiece), kSize = 4;

void require_done(const WorkError& error) {
    if (!error.message.empty()) throw std::runtime_error(error.message);
}

}  // namespace

/// A step takes milliseconds: threads that looked for work until the next would take the cores of the
/// consoles.
Packer::Packer(int threads) : team_(threads, {.look_if_often = Team::Time{0}}) {}

int Packer::pieces_of(std::size_t size) { return static_cast<int>((size + kPiece - 1) / kPiece); }

std::vector<u8> Packer::pack(std::span<const u8> bytes) {
    const int count = pieces_of(bytes.size());
    scratch_.resize(static_cast<std::size_t>(count) * kRoom);
    sizes_.resize(static_cast<std::size_t>(count));
    auto one = [&](int item) {
        const auto i = static_cast<std::size_t>(item);
        const std::span<const u8> piece =
            bytes.subspan(i * kPiece, std::min(kPiece, bytes.size() - i * kPiece));
        sizes_[i] = lz4::compress(piece.data(), piece.size(), scratch_.data() + i * kRoom);
    };
    if (count) require_done(team_.run(count, one));
    std::size_t total = sizes_.size() * kSize;
    for (const std::size_t size : sizes_) total += size;
    std::vector<u8> out(total);
    u8* size_to = out.data();
    u8* to = out.data() + sizes_.size() * kSize;
    for (std::size_t i = 0; i < sizes_.size(); ++i) {
        for (std::size_t byte = 0; byte < kSize; ++byte) *size_to++ = static_cast<u8>(sizes_[i] >> 8 * byte);
        std::memcpy(to, scratch_.data() + i * kRoom, sizes_[i]);
        to += sizes_[i];
    }
    return out;
}

void Packer::unpack(std::span<const u8> packed, std::span<u8> out) {
    const int count = pieces_of(out.size());
    const char* const wrong = "These are not the packed bytes of this array.";
    std::size_t at = static_cast<std::size_t>(count) * kSize;
    if (packed.size() < at) throw std::invalid_argument(wrong);
    starts_.clear();
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
        starts_.push_back(at);
        for (std::size_t byte = 0; byte < kSize; ++byte)
            at += static_cast<std::size_t>(packed[i * kSize + byte]) << 8 * byte;
    }
    starts_.push_back(at);
    if (at != packed.size()) throw std::invalid_argument(wrong);
    std::atomic<bool> fits{true};
    auto one = [&](int item) {
        const auto i = static_cast<std::size_t>(item);
        const std::span<u8> part = out.subspan(i * kPiece, std::min(kPiece, out.size() - i * kPiece));
        if (!lz4::decompress(packed.data() + starts_[i], starts_[i + 1] - starts_[i], part.data(),
                             part.size()))
            fits = false;
    };
    if (count) require_done(team_.run(count, one));
    if (!fits) throw std::invalid_argument(wrong);
}

}  // namespace wz
