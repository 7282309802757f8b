#pragma once
#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "nes/types.hpp"
#include "threads/team.hpp"

namespace wz {

/// An array compressed in pieces of one size. Packed, it is the size of each compressed piece, four bytes,
/// the lowest first, then the pieces.
class Pieces {
  public:
    static std::size_t count_of(std::size_t size);

    /// For arrays of so many bytes.
    void resize(std::size_t size);
    std::size_t count() const { return sizes_.size(); }
    /// Compresses one piece of the array. Different pieces may be compressed at once.
    void compress(std::size_t which, std::span<const u8> array);
    std::vector<u8> packed() const;

  private:
    std::vector<u8> room_;
    std::vector<std::size_t> sizes_;
};

/// Compresses arrays for the network on several threads.
class Packer {
  public:
    explicit Packer(int threads);

    std::vector<u8> pack(std::span<const u8> bytes);
    /// Fills all of `out`. Throws std::invalid_argument if the packed bytes are not those of so many.
    void unpack(std::span<const u8> packed, std::span<u8> out);

  private:
    Team team_;
    Pieces pieces_;
    std::vector<std::size_t> starts_;
};

/// Compresses an array of frames while threads draw them: a piece as soon as its last frame is there, and
/// still in the cache. It gives the same bytes as Packer.
class FramePacker {
  public:
    FramePacker(int frames, std::size_t frame_size);

    int frames() const { return frames_; }
    std::size_t frame_size() const { return frame_size_; }

    /// No frame of the next array is drawn yet.
    void begin();
    /// One frame of the array is drawn; every frame once, by any thread.
    void drawn(int frame, const u8* array);
    /// Once all frames are drawn. Throws std::logic_error before.
    std::vector<u8> packed() const;

  private:
    const int frames_;
    const std::size_t frame_size_;
    Pieces pieces_;
    /// Frames of each piece that are not drawn. A frame may lie in several pieces.
    std::unique_ptr<std::atomic<int>[]> left_;
};

}  // namespace wz
