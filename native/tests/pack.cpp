// Packing for the network: whatever is packed comes back, and hostile bytes are refused without harm.
#include <algorithm>
#include <bit>
#include <random>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "pack/packer.hpp"
#include "simd/kernels.hpp"
#include "simd/sets.hpp"
#include "tests/expect.hpp"

namespace {

using namespace wz;

std::mt19937 dice(1);

/// Runs, repeats from near and far, and noise, in turn.
std::vector<u8> some_bytes(std::size_t size) {
    std::vector<u8> bytes;
    while (bytes.size() < size) {
        const std::size_t length = 1 + dice() % 300;
        const unsigned kind = dice() % 3;
        const u8 value = static_cast<u8>(dice());
        const std::size_t back = bytes.empty() ? 0 : 1 + dice() % bytes.size();
        for (std::size_t i = 0; i < length; ++i)
            bytes.push_back(kind == 0   ? value
                            : kind == 1 ? static_cast<u8>(dice())
                                        : (back ? bytes[bytes.size() - back] : value));
    }
    bytes.resize(size);
    return bytes;
}

constexpr std::size_t kWidth = 84;

std::vector<u8> compressed(const std::vector<u8>& bytes, std::size_t width = kWidth) {
    std::vector<u8> out(frame_codec::most(bytes.size()));
    out.resize(frame_codec::compress(bytes.data(), bytes.size(), frame_codec::distances(width), out.data()));
    return out;
}

bool decompresses(const std::vector<u8>& packed, std::vector<u8>& out, std::size_t width = kWidth) {
    return frame_codec::decompress(packed.data(), packed.size(), frame_codec::distances(width), out.data(),
                                   out.size());
}

/// As native/pack/frame_codec.hpp says, byte by byte.
std::vector<u8> compressed_plainly(const std::vector<u8>& in, std::size_t width) {
    const auto [row, columns] = frame_codec::distances(width);
    std::vector<u8> out;
    for (std::size_t from = 0; from < in.size(); from += 64) {
        unsigned changed = 0, across = 0;
        std::vector<u8> sets, values;
        for (std::size_t k = 0; k < 8 && from + 8 * k < in.size(); ++k) {
            const std::size_t at = from + 8 * k, end = std::min(at + 8, in.size());
            const auto set_of = [&](std::size_t distance) {
                unsigned set = 0;
                for (std::size_t i = at; i < end; ++i)
                    set |= static_cast<unsigned>(in[i] != (at < distance ? 0 : in[i - distance])) << (i - at);
                return set;
            };
            const unsigned above = set_of(row), before = set_of(columns);
            if (!above) continue;
            const bool nearer = std::popcount(before) < std::popcount(above);
            changed |= 1u << k, across |= static_cast<unsigned>(nearer) << k;
            sets.push_back(static_cast<u8>(nearer ? before : above));
            for (std::size_t i = at; i < end; ++i)
                if (sets.back() >> (i - at) & 1) values.push_back(in[i]);
        }
        out.push_back(static_cast<u8>(changed));
        if (changed) out.push_back(static_cast<u8>(across));
        out.insert(out.end(), sets.begin(), sets.end());
        out.insert(out.end(), values.begin(), values.end());
    }
    return out;
}

void test_every_size_and_width_comes_back_by_every_instruction_set() {
    for (std::size_t i = 0; i < 3000; ++i) {
        const std::size_t size = i < 600 ? i : dice() % 10'000, width = 1 + dice() % 300;
        const auto [row, columns] = frame_codec::distances(width);
        EXPECT(row >= 8 && columns >= 8 && row % width == 0);
        const std::vector<u8> bytes = some_bytes(size), packed = compressed_plainly(bytes, width);
        EXPECT(compressed(bytes, width) == packed);
        for (const std::string& set : simd::instruction_sets()) {
            const simd::Kernels& with = *simd::find_kernels(set.c_str());
            std::vector<u8> out(frame_codec::most(size)), back(size);
            out.resize(with.pack_frame(bytes.data(), size, row, columns, out.data()));
            EXPECT(out == packed);
            EXPECT(with.unpack_frame(packed.data(), packed.size(), row, columns, back.data(), size));
            EXPECT(back == bytes);
        }
    }
    std::vector<u8> noise(5000);
    for (u8& byte : noise) byte = static_cast<u8>(dice());
    EXPECT(compressed(noise).size() <= frame_codec::most(noise.size()));
}

void test_tiles_that_repeat_after_a_quarter_of_a_row_need_little() {
    std::vector<u8> tiles(84 * 84);
    for (std::size_t i = 0; i < tiles.size(); ++i) tiles[i] = static_cast<u8>(dice());
    for (std::size_t i = 0; i < tiles.size(); ++i)
        if (i % 84 >= 21) tiles[i] = tiles[i - 21];
    EXPECT(compressed(tiles).size() < tiles.size() / 2);
    EXPECT(compressed(std::vector<u8>(84 * 84, 200)).size() < 84 * 84 / 32);
}

void test_hostile_bytes_are_refused_or_fill_the_array() {
    const std::vector<u8> bytes = some_bytes(4000), packed = compressed(bytes);
    int refused = 0;
    for (int i = 0; i < 20'000; ++i) {
        std::vector<u8> changed = packed;
        for (unsigned k = dice() % 4; k < 4; ++k) changed[dice() % changed.size()] = static_cast<u8>(dice());
        changed.resize(dice() % 8 ? changed.size() : dice() % changed.size());
        changed.shrink_to_fit();  // a read behind its end is one behind the memory
        std::vector<u8> back(bytes.size());
        refused += !decompresses(changed, back);
    }
    EXPECT(refused > 1000);
    for (const std::size_t other : {bytes.size() - 100, bytes.size() + 100}) {
        std::vector<u8> back(other);
        EXPECT(!decompresses(packed, back));
    }
    std::vector<u8> back(1);
    EXPECT(!decompresses({}, back));
}

void test_threads_pack_the_same_bytes() {
    constexpr std::size_t kFrame = 1000, kFrames = 999;
    const std::vector<u8> bytes = some_bytes(kFrames * kFrame);
    Packer one(1, kFrame, 100), three(3, kFrame, 100);
    const std::vector<u8> packed = one.pack(bytes);
    EXPECT(packed == three.pack(bytes));
    std::vector<u8> back(bytes.size());
    three.unpack(packed, back);
    EXPECT(back == bytes);
    EXPECT(one.pack({}).empty());
    one.unpack({}, {});
    auto is_refused = [](auto&& call) {
        try {
            call();
        } catch (const std::invalid_argument&) {
            return true;
        }
        return false;
    };
    for (const std::size_t size : {std::size_t{0}, std::size_t{3}, packed.size() - 1})
        EXPECT(is_refused([&] { three.unpack(std::span(packed).first(size), back); }));
    EXPECT(is_refused([&] { three.unpack(packed, std::span(back).first(back.size() - 1)); }));
    EXPECT(is_refused([&] { three.unpack(packed, std::span(back).first(back.size() - kFrame)); }));
    EXPECT(is_refused([&] { one.pack(std::span(bytes).first(kFrame + 1)); }));
}

void test_frames_packed_as_they_are_drawn_are_the_same_bytes() {
    Team team(3, {});
    for (const auto& [frames, size, width] : {std::tuple{1, 1, 1},
                                              {5, 7056, 84},
                                              {64, 7056, 84},
                                              {9, 21168, 84},
                                              {3, 100'000, 250},
                                              {200, 999, 27}}) {
        const auto each = static_cast<std::size_t>(size), wide = static_cast<std::size_t>(width);
        Packer whole(2, each, wide);
        FramePacker packer(frames, each, wide);
        for (int step = 0; step < 3; ++step) {
            const std::vector<u8> array = some_bytes(static_cast<std::size_t>(frames) * each);
            std::vector<int> order(static_cast<std::size_t>(frames));
            for (int i = 0; i < frames; ++i) order[static_cast<std::size_t>(i)] = i;
            std::shuffle(order.begin(), order.end(), dice);
            packer.begin();
            auto draw = [&](int i) { packer.drawn(order[static_cast<std::size_t>(i)], array.data()); };
            EXPECT(team.run(frames - 1, draw).message.empty());
            bool threw = false;
            try {
                packer.packed();
            } catch (const std::logic_error&) {
                threw = true;
            }
            EXPECT(threw);
            draw(frames - 1);
            EXPECT(packer.packed() == whole.pack(array));
        }
    }
}

}  // namespace

int main() {
    test_every_size_and_width_comes_back_by_every_instruction_set();
    test_tiles_that_repeat_after_a_quarter_of_a_row_need_little();
    test_hostile_bytes_are_refused_or_fill_the_array();
    test_threads_pack_the_same_bytes();
    test_frames_packed_as_they_are_drawn_are_the_same_bytes();
    return test::result("pack");
}
