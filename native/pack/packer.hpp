#pragma once
#include <atomic>
#include <span>
#include <vector>

#include "pack/frame_codec.hpp"
#include "threads/team.hpp"

namespace wz {

/// Frames of one size, each compressed by itself. Packed, it is the size of each compressed frame, four
/// bytes, the lowest first, then the frames.
class PackedFrames {
  public:
    PackedFrames(std::size_t frame_size, std::size_t width);

    std::size_t frame_size() const { return frame_size_; }
    void resize(std::size_t frames);
    std::size_t count() const { return sizes_.size(); }
    /// Compresses one frame of the array. Different frames may be compressed at once.
    void compress(std::size_t which, const u8* array);
    std::vector<u8> packed() const;
    bool decompress(std::span<const u8> packed, u8* frame) const;

  private:
    const std::size_t frame_size_, room_each_;
    const frame_codec::Distances distances_;
    std::vector<u8> room_;
    std::vector<std::size_t> sizes_;
};

/// Compresses arrays of frames for the network on several threads.
class Packer {
  public:
    Packer(int threads, std::size_t frame_size, std::size_t width);

    /// Throws std::invalid_argument if these are not whole frames.
    std::vector<u8> pack(std::span<const u8> frames);
    /// Fills all of `out`. Throws std::invalid_argument if the packed bytes are not those of so many frames.
    void unpack(std::span<const u8> packed, std::span<u8> out);

  private:
    Team team_;
    PackedFrames frames_;
    std::vector<std::size_t> starts_;
};

/// Compresses the frames of an array as soon as each is drawn, and still in the cache. It gives the same
/// bytes as Packer.
class FramePacker {
  public:
    FramePacker(int frames, std::size_t frame_size, std::size_t width);

    int frames() const { return static_cast<int>(frames_.count()); }
    std::size_t frame_size() const { return frames_.frame_size(); }

    /// No frame of the next array is drawn yet.
    void begin() { left_ = frames(); }
    /// One frame of the array is drawn; every frame once, by any thread.
    void drawn(int frame, const u8* array);
    /// Once all frames are drawn. Throws std::logic_error before.
    std::vector<u8> packed() const;

  private:
    PackedFrames frames_;
    std::atomic<int> left_;  ///< frames that are not drawn
};

}  // namespace wz
