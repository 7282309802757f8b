#pragma once
#include <vector>

#include "nes/palette.hpp"
#include "nes/ppu.hpp"

namespace wz {

/// Which value of a pixel becomes the observation.
enum class Channel : u8 { Gray, Red, Green, Blue };

/// Shrinks pictures by exact area averaging: every output pixel is the mean of the input area it covers,
/// rounded half up. All arithmetic is on integers, so every platform gives the same bytes.
class Resizer {
  public:
    /// Input rows [top, 240) and all 256 columns become height x width. Sizes are at most the input's.
    Resizer(int height, int width, int top, Palette palette = Palette::NesPy);

    /// Writes height x width bytes. With `other`, each input pixel is the brighter of the two frames.
    void operator()(const Frame& frame, const Frame* other, Channel channel, u8* out) const;

    int height() const { return height_; }
    int width() const { return width_; }

  private:
    /// How input cells spread over output cells along one axis, in units that make every weight whole.
    struct Axis {
        int total = 0;             ///< the weights of one output cell add up to this
        int taps = 0;              ///< most input cells that one output cell touches
        std::vector<u16> first;    ///< output cell -> its first input cell
        std::vector<u16> weights;  ///< [output][taps], zero-padded
    };
    static Axis axis(int in, int out);
    void weigh_rows(const u8* const* lines, const u16* weights, int count, u16* sums) const;
    void weigh_columns(const u16* sums, u8* out) const;
    void plan_lanes();

    Palette palette_;
    int height_, width_, top_;
    Axis rows_, columns_;
    u32 divisor_;
    u64 reciprocal_;
    /// For at most four taps: sixteen output columns at a time, taps in pairs, as vector units want them.
    struct Lanes {
        int first;  ///< input column of lane index 0
        alignas(64) u16 index[2][32];
        alignas(64) u16 weight[2][32];
    };
    std::vector<Lanes> lanes_;
};

}  // namespace wz
