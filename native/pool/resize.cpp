#include "pool/resize.hpp"

#include <algorithm>
#include <numeric>

#include "nes/bytemap.hpp"
#include "nes/palette.hpp"

namespace wz {
namespace {

using Table = u8[64];

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

Resizer::Resizer(int height, int width, int top, Palette palette)
    : palette_(palette),
      height_(height),
      width_(width),
      top_(top),
      rows_(axis(Frame::kHeight - top, height)),
      columns_(axis(Frame::kWidth, width)),
      divisor_(static_cast<u32>(rows_.total) * static_cast<u32>(columns_.total)),
      // Exact for every sum below 2^24: sums are at most 255 * 240 * 256.
      reciprocal_(((u64{1} << 40) + divisor_ - 1) / divisor_) {
    plan_lanes();
}

void Resizer::plan_lanes() {
    // Quotients of sums this small come out exact in single precision (see weigh_columns).
    if (columns_.taps > 4 || rows_.total > 128 || divisor_ > 4096) return;
    for (int from = 0; from < width_; from += 16) {
        Lanes l{};
        l.first = columns_.first[static_cast<std::size_t>(from)];
        for (int i = 0; i < 16 && from + i < width_; ++i) {
            const auto column = static_cast<std::size_t>(from + i);
            for (int t = 0; t < columns_.taps; ++t) {
                const int at = columns_.first[column] - l.first + t;
                const u16 weight = columns_.weights[column * static_cast<std::size_t>(columns_.taps) +
                                                    static_cast<std::size_t>(t)];
                if (at >= 64) {
                    if (weight == 0) continue;
                    lanes_.clear();
                    return;
                }
                l.index[t / 2][2 * i + t % 2] = static_cast<u16>(at);
                l.weight[t / 2][2 * i + t % 2] = weight;
            }
        }
        lanes_.push_back(l);
    }
}

void Resizer::weigh_rows(const u8* const* lines, const u16* weights, int count, u16* sums) const {
    auto pass = [&](auto... at) {
        for (int x = 0; x < Frame::kWidth; ++x)
            sums[x] = static_cast<u16>(((lines[at][x] * weights[at]) + ...));
    };
    switch (count) {
        case 1:
            return pass(0);
        case 2:
            return pass(0, 1);
        case 3:
            return pass(0, 1, 2);
        case 4:
            return pass(0, 1, 2, 3);
        default:
            break;
    }
    pass(0, 1, 2, 3);
    for (int t = 4; t < count; ++t)
        for (int x = 0; x < Frame::kWidth; ++x)
            sums[x] = static_cast<u16>(sums[x] + lines[t][x] * weights[t]);
}

void Resizer::weigh_columns(const u16* sums, u8* out) const {
    const u32 half = divisor_ / 2;
#if defined(__AVX512BW__)
    if (!lanes_.empty()) {
        // (sum + 1/2) / divisor is at least 1/8192 away from a whole number, far more than the rounding
        // error.
        const __m512 scale = _mm512_set1_ps(1.0f / static_cast<float>(divisor_)),
                     nudge = _mm512_set1_ps(0.5f);
        const __m512i round = _mm512_set1_epi32(static_cast<int>(half));
        int left = width_;
        for (const Lanes& l : lanes_) {
            const __m512i lo = _mm512_loadu_si512(sums + l.first),
                          hi = _mm512_loadu_si512(sums + l.first + 32);
            const __m512i a =
                _mm512_madd_epi16(_mm512_permutex2var_epi16(lo, _mm512_load_si512(l.index[0]), hi),
                                  _mm512_load_si512(l.weight[0]));
            const __m512i b =
                _mm512_madd_epi16(_mm512_permutex2var_epi16(lo, _mm512_load_si512(l.index[1]), hi),
                                  _mm512_load_si512(l.weight[1]));
            const __m512i sum = _mm512_add_epi32(_mm512_add_epi32(a, b), round);
            const __m512i mean =
                _mm512_cvttps_epi32(_mm512_mul_ps(_mm512_add_ps(_mm512_cvtepi32_ps(sum), nudge), scale));
            const __mmask16 keep = left >= 16 ? 0xFFFF : static_cast<__mmask16>((1 << left) - 1);
            _mm512_mask_cvtepi32_storeu_epi8(out, keep, mean);
            out += 16;
            left -= 16;
        }
        return;
    }
#endif
    const int taps = columns_.taps;
    const u16* weights = columns_.weights.data();
    for (int i = 0; i < width_; ++i, weights += taps) {
        const u16* from = sums + columns_.first[static_cast<std::size_t>(i)];
        u32 sum = half;
        if (taps == 4)
            sum += static_cast<u32>(from[0] * weights[0] + from[1] * weights[1] + from[2] * weights[2] +
                                    from[3] * weights[3]);
        else
            for (int t = 0; t < taps; ++t) sum += static_cast<u32>(from[t]) * weights[t];
        out[i] = static_cast<u8>(sum * reciprocal_ >> 40);
    }
}

void Resizer::operator()(const Frame& frame, const Frame* other, Channel channel, u8* out) const {
    const auto& tables = kTables.value[static_cast<int>(palette_)][static_cast<int>(channel)];
    // Room behind the last column for taps of weight zero and whole vectors.
    alignas(64) u16 sums[Frame::kWidth + 64] = {};
    alignas(64) u8 line[Frame::kHeight][Frame::kWidth];
    const u8* lines[Frame::kHeight];
    int loaded = top_;
    for (int j = 0; j < height_; ++j) {
        const u16* weights =
            rows_.weights.data() + static_cast<std::size_t>(j) * static_cast<std::size_t>(rows_.taps);
        const int first = top_ + rows_.first[static_cast<std::size_t>(j)];
        int count = 0;
        for (; count < rows_.taps && weights[count]; ++count) lines[count] = line[first + count];
        for (; loaded < first + count; ++loaded) {
            u8* to = line[loaded];
            map_bytes(frame.line(loaded), to, Frame::kWidth, tables[frame.emphasis[loaded]]);
            if (other) {
                alignas(64) u8 second[Frame::kWidth];
                map_bytes(other->line(loaded), second, Frame::kWidth, tables[other->emphasis[loaded]]);
                for (int x = 0; x < Frame::kWidth; ++x) to[x] = std::max(to[x], second[x]);
            }
        }
        weigh_rows(lines, weights, count, sums);
        weigh_columns(sums, out + j * width_);
    }
}

}  // namespace wz
