#include "pool/resize.hpp"

#include <algorithm>
#include <numeric>

#include "nes/palette.hpp"

namespace wz {
namespace {

/// The channel's value for every colour, for each palette and each setting of the emphasis bits.
struct Tables {
    u8 value[2][4][8][64];
    Tables() {
        for (int p = 0; p < 2; ++p)
            for (int e = 0; e < 8; ++e)
                for (int i = 0; i < 64; ++i) {
                    const Rgb c = colour(i, e, static_cast<Palette>(p));
                    value[p][0][e][i] = luma(c);
                    value[p][1][e][i] = c.r;
                    value[p][2][e][i] = c.g;
                    value[p][3][e][i] = c.b;
                }
    }
};
const Tables kTables;

}  // namespace

Resizer::Axis Resizer::axis(int in, int out) {
    const int g = std::gcd(in, out), n_in = in / g, n_out = out / g;
    Axis a;
    a.total = n_in;
    a.taps = 0;
    std::vector<std::vector<u16>> cells(static_cast<std::size_t>(out));
    for (int j = 0; j < out; ++j) {
        // On a common ruler an input cell is n_out long and an output cell n_in.
        const int from = j * n_in, to = from + n_in;
        a.first.push_back(static_cast<u16>(from / n_out));
        for (int i = from / n_out; i * n_out < to; ++i)
            cells[static_cast<std::size_t>(j)].push_back(
                static_cast<u16>(std::min(to, (i + 1) * n_out) - std::max(from, i * n_out)));
        a.taps = std::max(a.taps, static_cast<int>(cells[static_cast<std::size_t>(j)].size()));
    }
    for (auto& c : cells) {
        c.resize(static_cast<std::size_t>(a.taps));
        a.weights.insert(a.weights.end(), c.begin(), c.end());
    }
    return a;
}

Resizer::Resizer(int height, int width, int top, Palette palette, const simd::Kernels& kernels)
    : does_(&kernels),
      palette_(palette),
      height_(height),
      width_(width),
      top_(top),
      rows_(axis(Frame::kHeight - top, height)),
      columns_(axis(Frame::kWidth, width)),
      divisor_(static_cast<u32>(rows_.total) * static_cast<u32>(columns_.total)),
      few_taps_(rows_.taps <= 4 && columns_.taps <= 4 && rows_.total <= 128 && divisor_ <= 4096) {
    plan_rows();
    if (few_taps_) plan_lanes();
    if (few_taps_ && width_ % 4 == 0) plan_quads();
}

void Resizer::plan_rows() {
    for (std::size_t j = 0; j < static_cast<std::size_t>(height_); ++j) {
        const auto taps = static_cast<std::size_t>(rows_.taps);
        const u16 *weights = rows_.weights.data() + j * taps, *end = std::find(weights, weights + taps, 0);
        Row row{top_ + rows_.first[j], 0, {}};
        row.last = row.first + static_cast<int>(end - weights) - 1;
        std::copy_n(weights, std::min<std::ptrdiff_t>(end - weights, 4), row.weights);
        plan_.push_back(row);
    }
}

void Resizer::plan_lanes() {
    // Four taps each, as the vector loops want them.
    std::vector<u16> weights(static_cast<std::size_t>(width_) * 4);
    for (std::size_t i = 0; i < static_cast<std::size_t>(width_); ++i)
        std::copy_n(columns_.weights.begin() + static_cast<std::ptrdiff_t>(i) * columns_.taps, columns_.taps,
                    weights.begin() + static_cast<std::ptrdiff_t>(i) * 4);
    columns_.weights = std::move(weights);
    columns_.taps = 4;
    for (int from = 0; from < width_; from += 16) {
        simd::Columns::Lanes l{};
        constexpr int kColumns = simd::Columns::Lanes::kColumns;
        l.first = std::min<int>(columns_.first[static_cast<std::size_t>(from)], Frame::kWidth - kColumns);
        for (int i = 0; i < 16 && from + i < width_; ++i) {
            const auto column = static_cast<std::size_t>(from + i);
            for (int t = 0; t < columns_.taps; ++t) {
                const int at = columns_.first[column] - l.first + t;
                const u16 weight = columns_.weights[column * static_cast<std::size_t>(columns_.taps) +
                                                    static_cast<std::size_t>(t)];
                if (weight == 0) continue;
                if (at >= kColumns) return lanes_.clear();
                l.index[t / 2][2 * i + t % 2] = simd::Columns::Lanes::index_of(at);
                l.weight[t / 2][2 * i + t % 2] = weight;
            }
        }
        lanes_.push_back(l);
    }
}

void Resizer::plan_quads() {
    constexpr int kColumns = sizeof simd::Columns::Quad::index;
    for (int from = 0; from < width_; from += 4) {
        simd::Columns::Quad q{};
        q.first = std::min<int>(columns_.first[static_cast<std::size_t>(from)], Frame::kWidth - kColumns);
        for (int tap = 0; tap < kColumns; ++tap) {
            const auto at = static_cast<std::size_t>(from * 4 + tap);
            const int index = columns_.first[at / 4] + tap % 4 - q.first, weight = columns_.weights[at];
            if (weight == 0) continue;
            if (index >= kColumns || weight > 255) return quads_.clear();
            q.index[tap] = static_cast<u8>(index);
            q.weight[tap] = static_cast<u8>(weight);
        }
        quads_.push_back(q);
    }
}

const u8* Resizer::encoding(Channel channel) const {
    return kTables.value[static_cast<int>(palette_)][static_cast<int>(channel)][0];
}

template <class Line>
void Resizer::reduce_plainly(int j, const Line& line, u8* out) const {
    u32 sums[Frame::kWidth + 256] = {};  // with room for taps of weight zero
    const u16* weights = rows_.weights.data() + j * rows_.taps;
    const Row& row = plan_[static_cast<std::size_t>(j)];
    for (int y = row.first; y <= row.last; ++y)
        for (int x = 0; x < Frame::kWidth; ++x)
            sums[x] += static_cast<u32>(line(y)[x]) * weights[y - row.first];
    const u16* w = columns_.weights.data();
    for (int i = 0; i < width_; ++i, w += columns_.taps) {
        u32 sum = divisor_ / 2;
        for (int t = 0; t < columns_.taps; ++t)
            sum += sums[columns_.first[static_cast<std::size_t>(i)] + t] * w[t];
        out[i] = static_cast<u8>(sum / divisor_);
    }
}

template <class Line>
void Resizer::reduce(int j, int end, const Line& line, u8* out) const {
    if (!few_taps_) {
        for (; j < end; ++j, out += width_) reduce_plainly(j, line, out);
        return;
    }
    const simd::Columns columns{width_,
                                static_cast<int>(divisor_),
                                1.0f / static_cast<float>(divisor_),
                                columns_.first.data(),
                                columns_.weights.data(),
                                lanes_.empty() ? nullptr : lanes_.data(),
                                quads_.empty() ? nullptr : quads_.data()};
    while (j < end) {
        simd::Lines rows[simd::Kernels::kRows];
        int count = 0;
        for (; j < end && count < simd::Kernels::kRows; ++j, ++count) {
            const Row& row = plan_[static_cast<std::size_t>(j)];
            for (int t = 0; t < 4; ++t) {
                rows[count].at[t] = line(std::min(row.first + t, row.last));
                rows[count].weight[t] = row.weights[t];
            }
        }
        does_->shrink(rows, count, columns, out);
        out += count * width_;
    }
}

void Resizer::WhileDrawn::read(const Frame& frame, int lines) {
    const Resizer& r = *resizer_;
    for (; other_ && lines_ < lines; ++lines_)
        r.does_->brighter(frame.line(lines_), other_->line(lines_), brighter_[Frame::among_newest(lines_)]);
    const u8* const newest = other_ ? brighter_[0] : frame.line(0);
    const int stride = other_ ? Frame::kWidth : Frame::kStride, from = row_;
    while (row_ < r.height_ && r.plan_[static_cast<std::size_t>(row_)].last < lines) ++row_;
    r.reduce(
        from, row_, [=](int y) { return newest + Frame::among_newest(y) * stride; }, out_ + from * r.width_);
}

void Resizer::operator()(const Frame& frame, const Frame* other, Channel channel, u8* out) const {
    const u8* table = encoding(channel);
    alignas(64) u8 made[Frame::kHeight][Frame::kWidth];
    const u8* lines[Frame::kHeight];
    auto values = [&](const Frame& f, int y, u8* to) -> const u8* {
        if (f.encoding == table) return f.line(y);
        does_->map_bytes(f.line(y), to, Frame::kWidth, table + 64 * f.emphasis[y]);
        return to;
    };
    for (int y = top_; y < Frame::kHeight; ++y) {
        lines[y] = values(frame, y, made[y]);
        if (!other) continue;
        alignas(64) u8 second[Frame::kWidth];
        const u8 *a = lines[y], *b = values(*other, y, second);
        does_->brighter(a, b, made[y]);
        lines[y] = made[y];
    }
    reduce(0, height_, [&lines](int y) { return lines[y]; }, out);
}

}  // namespace wz
