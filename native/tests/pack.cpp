// Packing for the network: whatever is packed comes back, and hostile bytes are refused without harm.
#include <algorithm>
#include <random>
#include <vector>

#include "pack/lz4.hpp"
#include "pack/packer.hpp"
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

std::vector<u8> compressed(const std::vector<u8>& bytes) {
    std::vector<u8> out(lz4::most(bytes.size()));
    out.resize(lz4::compress(bytes.data(), bytes.size(), out.data()));
    return out;
}

void test_every_size_comes_back() {
    for (std::size_t size = 0; size < 600; ++size) {
        const std::vector<u8> bytes = some_bytes(size), packed = compressed(bytes);
        std::vector<u8> back(size);
        EXPECT(lz4::decompress(packed.data(), packed.size(), back.data(), size));
        EXPECT(back == bytes);
    }
    for (const std::size_t size : {70'000ul, 200'000ul}) {
        const std::vector<u8> bytes = some_bytes(size), packed = compressed(bytes);
        EXPECT(packed.size() < size);
        std::vector<u8> back(size);
        EXPECT(lz4::decompress(packed.data(), packed.size(), back.data(), size));
        EXPECT(back == bytes);
    }
    std::vector<u8> noise(5000);
    for (u8& byte : noise) byte = static_cast<u8>(dice());
    EXPECT(compressed(noise).size() <= lz4::most(noise.size()));
}

void test_hostile_bytes_are_refused_or_fill_the_array() {
    const std::vector<u8> bytes = some_bytes(4000), packed = compressed(bytes);
    int refused = 0;
    for (int i = 0; i < 20'000; ++i) {
        std::vector<u8> changed = packed;
        for (unsigned k = dice() % 4; k < 4; ++k) changed[dice() % changed.size()] = static_cast<u8>(dice());
        changed.resize(dice() % 8 ? changed.size() : dice() % changed.size());
        std::vector<u8> back(bytes.size());
        refused += !lz4::decompress(changed.data(), changed.size(), back.data(), back.size());
    }
    EXPECT(refused > 1000);
    std::vector<u8> back(bytes.size() + 1);
    EXPECT(!lz4::decompress(packed.data(), packed.size(), back.data(), back.size()));
    EXPECT(!lz4::decompress(packed.data(), packed.size(), back.data(), bytes.size() - 1));
    EXPECT(!lz4::decompress(nullptr, 0, back.data(), 1));
}

void test_threads_pack_the_same_bytes() {
    const std::vector<u8> bytes = some_bytes(1'000'000);
    Packer one(1), three(3);
    const std::vector<u8> packed = one.pack(bytes);
    EXPECT(packed == three.pack(bytes));
    std::vector<u8> back(bytes.size());
    three.unpack(packed, back);
    EXPECT(back == bytes);
    EXPECT(one.pack({}).empty());
    one.unpack({}, {});
    for (const std::size_t size : {std::size_t{0}, std::size_t{3}, packed.size() - 1}) {
        bool threw = false;
        try {
            three.unpack(std::span(packed).first(size), back);
        } catch (const std::invalid_argument&) {
            threw = true;
        }
        EXPECT(threw);
    }
}

void test_frames_packed_as_they_are_drawn_are_the_same_bytes() {
    Team team(3, {});
    Packer whole(2);
    // Frames smaller and larger than a piece, and some that lie in two.
    for (const auto& [frames, size] :
         {std::pair{1, 1}, {5, 7056}, {64, 7056}, {9, 21168}, {3, 100'000}, {200, 999}}) {
        FramePacker packer(frames, static_cast<std::size_t>(size));
        for (int step = 0; step < 3; ++step) {
            const std::vector<u8> array = some_bytes(static_cast<std::size_t>(frames * size));
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
    test_every_size_comes_back();
    test_hostile_bytes_are_refused_or_fill_the_array();
    test_threads_pack_the_same_bytes();
    test_frames_packed_as_they_are_drawn_are_the_same_bytes();
    return test::result("pack");
}
