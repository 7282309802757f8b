#include "pack/packer.hpp"

#include <cstring>
#include <stdexcept>

namespace wz {
namespace {

constexpr std::size_t kSize = 4;

void require_done(const WorkError& error) {
    if (!error.message.empty()) throw std::runtime_error(error.message);
}

}  // namespace

PackedFrames::PackedFrames(std::size_t frame_size, std::size_t width)
    : frame_size_(frame_size),
      room_each_(frame_codec::most(frame_size)),
      distances_(frame_codec::distances(width)) {}

void PackedFrames::resize(std::size_t frames) {
    sizes_.resize(frames);
    room_.resize(frames * room_each_);
}

void PackedFrames::compress(std::size_t which, const u8* array) {
    sizes_[which] = frame_codec::compress(array + which * frame_size_, frame_size_, distances_,
                                          room_.data() + which * room_each_);
}

std::vector<u8> PackedFrames::packed() const {
    std::size_t total = sizes_.size() * kSize;
    for (const std::size_t size : sizes_) total += size;
    std::vector<u8> out(total);
    u8* size_to = out.data();
    u8* to = out.data() + sizes_.size() * kSize;
    for (std::size_t i = 0; i < sizes_.size(); ++i) {
        for (std::size_t byte = 0; byte < kSize; ++byte) *size_to++ = static_cast<u8>(sizes_[i] >> 8 * byte);
        std::memcpy(to, room_.data() + i * room_each_, sizes_[i]);
        to += sizes_[i];
    }
    return out;
}

bool PackedFrames::decompress(std::span<const u8> packed, u8* frame) const {
    return frame_codec::decompress(packed.data(), packed.size(), distances_, frame, frame_size_);
}

/// A step takes milliseconds: threads that looked for work until the next would take the cores of the
/// consoles.
Packer::Packer(int threads, std::size_t frame_size, std::size_t width)
    : team_(threads, {.look_if_often = Team::Time{0}}), frames_(frame_size, width) {}

std::vector<u8> Packer::pack(std::span<const u8> frames) {
    if (frames.size() % frames_.frame_size()) throw std::invalid_argument("These are not whole frames.");
    frames_.resize(frames.size() / frames_.frame_size());
    auto one = [&](int i) { frames_.compress(static_cast<std::size_t>(i), frames.data()); };
    if (!frames.empty()) require_done(team_.run(static_cast<int>(frames_.count()), one));
    return frames_.packed();
}

void Packer::unpack(std::span<const u8> packed, std::span<u8> out) {
    const std::size_t size = frames_.frame_size(), count = out.size() / size;
    const char* const wrong = "These are not the packed bytes of this array.";
    std::size_t at = count * kSize;
    if (out.size() % size || packed.size() < at) throw std::invalid_argument(wrong);
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
        const auto part = packed.subspan(starts_[i], starts_[i + 1] - starts_[i]);
        if (!frames_.decompress(part, out.data() + i * size)) fits = false;
    };
    if (count) require_done(team_.run(static_cast<int>(count), one));
    if (!fits) throw std::invalid_argument(wrong);
}

FramePacker::FramePacker(int frames, std::size_t frame_size, std::size_t width)
    : frames_(frame_size, width), left_(frames) {
    frames_.resize(static_cast<std::size_t>(frames));
}

void FramePacker::drawn(int frame, const u8* array) {
    frames_.compress(static_cast<std::size_t>(frame), array);
    left_.fetch_sub(1, std::memory_order_release);
}

std::vector<u8> FramePacker::packed() const {
    if (left_.load(std::memory_order_acquire) != 0)
        throw std::logic_error("Not all of the frames are drawn.");
    return frames_.packed();
}

}  // namespace wz
