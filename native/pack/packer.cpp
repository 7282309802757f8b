#include "pack/packer.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "pack/lz4.hpp"

namespace wz {
namespace {

/// Frames look alike: eight of 84 x 84 compress better together than one by one. But the larger a piece, the
/// longer is the last one waited for.
constexpr std::size_t kPiece = 8 * 84 * 84, kRoom = lz4::most(kPiece), kSize = 4;

void require_done(const WorkError& error) {
    if (!error.message.empty()) throw std::runtime_error(error.message);
}

std::size_t size_of(std::size_t piece, std::size_t total) { return std::min(kPiece, total - piece * kPiece); }

}  // namespace

std::size_t Pieces::count_of(std::size_t size) { return (size + kPiece - 1) / kPiece; }

void Pieces::resize(std::size_t size) {
    sizes_.resize(count_of(size));
    room_.resize(sizes_.size() * kRoom);
}

void Pieces::compress(std::size_t which, std::span<const u8> array) {
    sizes_[which] = lz4::compress(array.data() + which * kPiece, size_of(which, array.size()),
                                  room_.data() + which * kRoom);
}

std::vector<u8> Pieces::packed() const {
    std::size_t total = sizes_.size() * kSize;
    for (const std::size_t size : sizes_) total += size;
    std::vector<u8> out(total);
    u8* size_to = out.data();
    u8* to = out.data() + sizes_.size() * kSize;
    for (std::size_t i = 0; i < sizes_.size(); ++i) {
        for (std::size_t byte = 0; byte < kSize; ++byte) *size_to++ = static_cast<u8>(sizes_[i] >> 8 * byte);
        std::memcpy(to, room_.data() + i * kRoom, sizes_[i]);
        to += sizes_[i];
    }
    return out;
}

/// A step takes milliseconds: threads that looked for work until the next would take the cores of the
/// consoles.
Packer::Packer(int threads) : team_(threads, {.look_if_often = Team::Time{0}}) {}

std::vector<u8> Packer::pack(std::span<const u8> bytes) {
    pieces_.resize(bytes.size());
    auto one = [&](int piece) { pieces_.compress(static_cast<std::size_t>(piece), bytes); };
    if (!bytes.empty()) require_done(team_.run(static_cast<int>(pieces_.count()), one));
    return pieces_.packed();
}

void Packer::unpack(std::span<const u8> packed, std::span<u8> out) {
    const std::size_t count = Pieces::count_of(out.size());
    const char* const wrong = "These are not the packed bytes of this array.";
    std::size_t at = count * kSize;
    if (packed.size() < at) throw std::invalid_argument(wrong);
    starts_.clear();
    for (std::size_t i = 0; i < count; ++i) {
        starts_.push_back(at);
        for (std::size_t byte = 0; byte < kSize; ++byte)
            at += static_cast<std::size_t>(packed[i * kSize + byte]) << 8 * byte;
    }
    starts_.push_back(at);
    if (at != packed.size()) throw std::invalid_argument(wrong);
    std::atomic<bool> fits{true};
    auto one = [&](int item) {
        const auto i = static_cast<std::size_t>(item);
        const std::span<u8> part = out.subspan(i * kPiece, size_of(i, out.size()));
        if (!lz4::decompress(packed.data() + starts_[i], starts_[i + 1] - starts_[i], part.data(),
                             part.size()))
            fits = false;
    };
    if (count) require_done(team_.run(static_cast<int>(count), one));
    if (!fits) throw std::invalid_argument(wrong);
}

FramePacker::FramePacker(int frames, std::size_t frame_size) : frames_(frames), frame_size_(frame_size) {
    pieces_.resize(static_cast<std::size_t>(frames) * frame_size);
    left_ = std::make_unique<std::atomic<int>[]>(pieces_.count());
    begin();
}

void FramePacker::begin() {
    const std::size_t size = static_cast<std::size_t>(frames_) * frame_size_;
    for (std::size_t i = 0; i < pieces_.count(); ++i) {
        const std::size_t first = i * kPiece / frame_size_;
        const std::size_t last = (i * kPiece + size_of(i, size) - 1) / frame_size_;
        left_[i].store(static_cast<int>(last - first + 1), std::memory_order_relaxed);
    }
}

void FramePacker::drawn(int frame, const u8* array) {
    const std::size_t from = static_cast<std::size_t>(frame) * frame_size_;
    for (std::size_t i = from / kPiece; i * kPiece < from + frame_size_; ++i)
        if (left_[i].fetch_sub(1, std::memory_order_acq_rel) == 1)
            pieces_.compress(i, {array, static_cast<std::size_t>(frames_) * frame_size_});
}

std::vector<u8> FramePacker::packed() const {
    for (std::size_t i = 0; i < pieces_.count(); ++i)
        if (left_[i].load(std::memory_order_acquire) != 0)
            throw std::logic_error("Not all of the frames are drawn.");
    return pieces_.packed();
}

}  // namespace wz
