// A whole game is what a console plays: scenes are waited for, and nothing is written. Needs WARPZONE_ROM.
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>

#include "pool/slot.hpp"
#include "tests/expect.hpp"

namespace {

using namespace wz;

constexpr u8 kRight = 0x80, kB = 0x02, kA = 0x01;

/// Plays at random until the game is over, with a console of its own beside it that gets the same buttons,
/// frame by frame. Returns how many scenes there were.
int play(std::shared_ptr<const Cartridge> cart, unsigned seed) {
    SlotConfig config;
    config.frame_skip = 1;
    config.actions = {kRight, kRight | kB, kRight | kA, kRight | kB | kA, 0};
    const Resizer resizer(84, 84, 0);
    Slot slot(cart, config, resizer);
    const smb::Stage game{0, 0};
    slot.begin(smb::prepare(*cart, game, Region::Ntsc, false), game, 0);
    auto console = std::make_unique<Machine>(slot.machine());
    std::mt19937 dice(seed);
    int scenes = 0, differing = 0;
    for (unsigned action = 0; !slot.over() && slot.episode().steps < 20'000;) {
        if (dice() % 16 == 0) action = dice() % static_cast<unsigned>(config.actions.size());
        const int before = slot.episode().frames;
        slot.step(static_cast<int>(action));
        const int frames = slot.episode().frames - before;
        scenes += frames > 1;
        for (int i = 0; i < frames; ++i)
            run_frame(*console, *cart, i ? u8{0} : config.actions[action], 0, nullptr);
        differing += std::memcmp(console->ram, slot.machine().ram, sizeof console->ram) != 0;
    }
    EXPECT(differing == 0);
    EXPECT(slot.episode().end == smb::End::GameOver);
    return scenes;
}

}  // namespace

int main() {
    const char* path = std::getenv("WARPZONE_ROM");
    if (!path) {
        std::puts("whole_game: WARPZONE_ROM is not set");
        return 1;
    }
    std::ifstream file(path, std::ios::binary);
    const std::vector<u8> bytes{std::istreambuf_iterator<char>(file), {}};
    const std::shared_ptr<const Cartridge> cart = Cartridge::parse(bytes);
    for (unsigned seed : {1u, 2u, 3u}) EXPECT(play(cart, seed) >= 2);  // after each of the first two lives
    return test::result("whole_game");
}
