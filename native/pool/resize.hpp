#pragma once
#include <vector>

#include "nes/palette.hpp"
#include "nes/ppu.hpp"
#include "simd/kernels.hpp"

namespace wz {

/// Which value of a pixel becomes the observation.
enum class Channel : u8 { Gray, Red, Green, Blue };

/// Shrinks pictures by exact area averaging: every output pixel is the mean of the input area it covers,
/// rounded half up. All arithmetic is on integers, so every platform gives the same bytes.
class Resizer {
  public:
    /// Input rows [top, 240) and all 256 columns become height x width. Sizes are at most the input's.
    Resizer(int height, int width, int top, Palette palette = Palette::NesPy,
            const simd::Kernels& kernels = simd::kernels());

    /// Writes height x width bytes. With `other`, each input pixel is the brighter of the two frames.
    /// Frames whose pixels are the channel's values already (`encoding`) save looking them up.
    void operator()(const Frame& frame, const Frame* other, Channel channel, u8* out) const;

    /// What Frame::encoding must be for a picture in that channel.
    const u8* encoding(Channel channel) const;
    /// Whether WhileDrawn can do it: not where one output row needs too many lines.
    bool can_while_drawn() const { return rows_.taps <= Frame::kNewest / 2; }

    int height() const { return height_; }
    int width() const { return width_; }

    class WhileDrawn;

  private:
    /// How input cells spread over output cells along one axis, in units that make every weight whole.
    struct Axis {
        int total = 0;             ///< the weights of one output cell add up to this
        int taps = 0;              ///< most input cells that one output cell touches
        std::vector<u16> first;    ///< output cell -> its first input cell
        std::vector<u16> weights;  ///< [output][taps], zero-padded
    };
    static Axis axis(int in, int out);
    /// An output row: its input lines, counted from line 0, and their weights (with more than four, in
    /// `rows_`).
    struct Row {
        int first, last;
        u16 weights[4];
    };
    /// Output rows [j, end) at `out`, from their input lines: `line(y)` is line y.
    template <class Line>
    void reduce(int j, int end, const Line& line, u8* out) const;
    template <class Line>
    void reduce_plainly(int j, const Line& line, u8* out) const;
    void plan_rows();
    void plan_lanes();
    void plan_quads();

    const simd::Kernels* does_;
    Palette palette_;
    int height_, width_, top_;
    Axis rows_, columns_;
    u32 divisor_;
    bool few_taps_;  ///< the vector loops can do it; else it is done plainly
    std::vector<Row> plan_;
    std::vector<simd::Columns::Lanes> lanes_;
    std::vector<simd::Columns::Quad> quads_;
};

/// Shrinks a picture in one channel while it is drawn, with `encoding` as the frame's: the same bytes as from
/// the whole frame.
class Resizer::WhileDrawn final : public Frame::Reader {
  public:
    /// What comes next goes to `out`; with `other`, a whole frame of the same encoding, the brighter pixels.
    void to(const Resizer& resizer, const Frame* other, u8* out) {
        resizer_ = &resizer;
        other_ = other;
        out_ = out;
    }
    void begin() override { row_ = lines_ = 0; }
    void read(const Frame& frame, int lines) override;

  private:
    const Resizer* resizer_ = nullptr;
    const Frame* other_ = nullptr;
    u8* out_ = nullptr;
    int row_ = 0, lines_ = 0;  ///< done so far
    alignas(64) u8 brighter_[Frame::kNewest][Frame::kWidth];
};

}  // namespace wz
