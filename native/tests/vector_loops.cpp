// Every instruction set's vector loops against plain ones, on random input; pictures shrunk while they are
// drawn against whole ones.
#include <algorithm>
#include <memory>
#include <string>

#include "nes/machine.hpp"
#include "pool/resize.hpp"
#include "simd/sets.hpp"
#include "tests/expect.hpp"
#include "tests/jit_random_program.hpp"

namespace {

using namespace wz;
using simd::Kernels;
using test::Random;

void fill(Random& r, u8* to, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) to[i] = r.byte();
}

void check_tiles(const Kernels& k, Random& r) {
    std::vector<u8> tiles(256 * 64 + 64), names(40), slots(24), values(16);
    for (u8& pixel : tiles) pixel = r.byte() & 3;
    fill(r, names.data(), names.size());
    for (u8& slot : slots) slot = r.byte() & 12;
    fill(r, values.data(), values.size());
    const int pairs = 1 + static_cast<int>(r.below(17)), rows = 1 + static_cast<int>(r.below(8));
    const Kernels::Tiles t{tiles.data(), names.data(), slots.data(), static_cast<int>(r.below(2)),
                           values.data()};
    std::vector<u8> found(300 * 8, 0xAA), expected = found;
    k.draw_tiles(t, pairs, rows, found.data() + 3, 300);
    for (int i = 0; i < 2 * pairs; ++i)
        for (int y = 0; y < rows; ++y)
            for (int x = 0; x < 8; ++x)
                expected[static_cast<std::size_t>(3 + y * 300 + i * 8 + x)] =
                    values[slots[static_cast<std::size_t>((i + t.odd) / 2)] +
                           tiles[names[static_cast<std::size_t>(i)] * 64u +
                                 static_cast<std::size_t>(y * 8 + x)]];
    EXPECT(found == expected);
}

void check_lookup(const Kernels& k, Random& r) {
    u8 in[256], out[256], table[64];
    fill(r, in, sizeof in);
    fill(r, table, sizeof table);
    k.map_bytes(in, out, 256, table);
    for (int i = 0; i < 256; ++i) EXPECT(out[i] == table[in[i] & 63]);
}

void check_brighter(const Kernels& k, Random& r) {
    u8 a[256], b[256], out[256];
    fill(r, a, sizeof a);
    fill(r, b, sizeof b);
    k.brighter(a, b, out);
    for (int i = 0; i < 256; ++i) EXPECT(out[i] == std::max(a[i], b[i]));
}

void check_paint(const Kernels& k, Random& r) {
    simd::Colours c;
    for (int i = 0; i < 32; ++i) {
        c.red[i] = r.byte(), c.green[i] = r.byte(), c.blue[i] = r.byte();
        c.words[i] = static_cast<u32>(c.red[i] << 16 | c.green[i] << 8 | c.blue[i]);
    }
    u8 slots[256 + 15];
    fill(r, slots, sizeof slots);
    const bool whole = r.chance(30);
    const int from = whole ? 0 : static_cast<int>(r.below(256)),
              to = whole ? 256 : from + static_cast<int>(r.below(static_cast<u32>(257 - from)));
    for (const bool rgb : {true, false}) {
        std::vector<u8> found(256 * 4, 0xAA), expected = found;
        k.paint(c, slots, from, to, rgb, found.data());
        for (int x = from; x < to; ++x) {
            const int i = slots[x] & 31;
            const u8 bytes[4] = {rgb ? c.red[i] : c.blue[i], c.green[i], rgb ? c.blue[i] : c.red[i], 0};
            std::copy_n(bytes, rgb ? 3 : 4, expected.begin() + x * (rgb ? 3 : 4));
        }
        EXPECT(found == expected);
    }
    constexpr int kStride = 288;
    u8 lines[3 * kStride];
    fill(r, lines, sizeof lines);
    for (u8& slot : lines) slot &= 15;
    std::vector<u8> found(3 * 256 * 3, 0xAA), expected = found;
    const int begin = from & ~15, end = to & ~15;
    for (int i = 0; i < 3; ++i)
        k.paint(c, lines + i * kStride, begin, end, true, expected.data() + i * 256 * 3);
    k.paint_background(c, lines, kStride, begin, end, 3, found.data());
    EXPECT(found == expected);
}

/// Reference: the mean of the area that an output pixel covers, on a ruler that both divide.
u8 area_mean(const std::vector<u8>& in, int lines, int height, int width, int i, int j) {
    i64 sum = 0;
    for (int y = i * lines / height; y < lines && y * height < (i + 1) * lines; ++y)
        for (int x = j * 256 / width; x < 256 && x * width < (j + 1) * 256; ++x) {
            const i64 down = std::min((i + 1) * lines, (y + 1) * height) - std::max(i * lines, y * height);
            const i64 across = std::min((j + 1) * 256, (x + 1) * width) - std::max(j * 256, x * width);
            sum += down * across * in[static_cast<std::size_t>(y * 256 + x)];
        }
    const i64 area = i64{lines} * 256;
    return static_cast<u8>((2 * sum + area) / (2 * area));
}

void check_pictures(const Kernels& k, Random& r, int height, int width, int top) {
    const Resizer resizer(height, width, top, Palette::NesPy, k);
    const auto frame = std::make_unique<Frame>(), other = std::make_unique<Frame>();
    for (Frame* f : {frame.get(), other.get()}) {
        f->encoding = resizer.encoding(Channel::Gray);
        fill(r, f->pixels, sizeof f->pixels);
        // The largest sums of all.
        std::memset(f->line(100), 255, 20 * Frame::kStride);
    }
    for (const Frame* second : {static_cast<const Frame*>(nullptr), static_cast<const Frame*>(other.get())}) {
        std::vector<u8> whole(static_cast<std::size_t>(height * width)), drawn = whole, pixels;
        resizer(*frame, second, Channel::Gray, whole.data());
        for (int y = top; y < Frame::kHeight; ++y)
            for (int x = 0; x < 256; ++x)
                pixels.push_back(second ? std::max(frame->line(y)[x], second->line(y)[x])
                                        : frame->line(y)[x]);
        for (int i = 0; i < height; ++i)
            for (int j = 0; j < width; ++j)
                EXPECT(whole[static_cast<std::size_t>(i * width + j)] ==
                       area_mean(pixels, Frame::kHeight - top, height, width, i, j));
        if (!resizer.can_while_drawn()) continue;
        const auto lines = std::make_unique<Frame>();
        Resizer::WhileDrawn shrink;
        lines->reader = &shrink;
        shrink.to(resizer, second, drawn.data());
        shrink.begin();
        for (int y = 0; y < Frame::kHeight;) {
            const int count = std::min(1 + static_cast<int>(r.below(8)), Frame::kHeight - y);
            for (int end = y + count; y < end; ++y) std::memcpy(lines->line(y), frame->line(y), 256);
            lines->complete(y);
        }
        EXPECT(drawn == whole);
    }
}

}  // namespace

int main() {
    std::string checked;
    const int sizes[][3] = {{84, 84, 0}, {84, 84, 32}, {96, 96, 0},    {61, 97, 0}, {240, 256, 0},
                            {1, 1, 0},   {64, 64, 0},  {120, 128, 16}, {42, 42, 0}, {83, 85, 8}};
    for (const std::string& set : simd::instruction_sets()) {
        const Kernels& k = *simd::find_kernels(set.c_str());
        for (u64 seed = 0; seed < 300; ++seed) {
            Random r(seed);
            check_tiles(k, r);
            check_lookup(k, r);
            check_brighter(k, r);
            check_paint(k, r);
        }
        Random r(1);
        for (const auto& s : sizes) check_pictures(k, r, s[0], s[1], s[2]);
        checked += " " + set;
    }
    std::printf("instruction sets:%s\n", checked.c_str());
    return test::result("vector_loops");
}
