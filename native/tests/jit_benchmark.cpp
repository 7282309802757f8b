// Frames a second of processor time, interpreted and translated in turn, nothing drawn. Needs a ROM: an
// argument or $WARPZONE_ROM.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iterator>
#include <vector>

#include "nes/machine.hpp"

namespace {

using namespace wz;

constexpr int kWarmUp = 400, kFrames = 2000, kRounds = 11;

/// Starts the game and then runs to the right, jumping now and then.
u8 buttons_at(int frame) {
    if (frame < 200) return frame % 40 < 4 ? kStart : 0;
    return static_cast<u8>(kRight | kB | (frame % 48 < 24 ? kA : 0));
}

double frames_per_second(const Machine& from, const Cartridge& cart, bool translate, Machine& end) {
    end = from;
    const std::clock_t start = std::clock();
    for (int i = 0; i < kFrames; ++i)
        run_frame(end, cart, buttons_at(kWarmUp + i), 0, nullptr, {true, translate});
    return kFrames * double{CLOCKS_PER_SEC} / static_cast<double>(std::clock() - start);
}

}  // namespace

int main(int argc, char** argv) {
    const char* rom = argc > 1 ? argv[1] : std::getenv("WARPZONE_ROM");
    if (!rom || !*rom) {
        std::printf("no ROM: nothing to time\n");
        return 0;
    }
    std::ifstream file(rom, std::ios::binary);
    const std::vector<u8> image{std::istreambuf_iterator<char>(file), {}};
    const auto cart = Cartridge::parse(image);
    static Machine start, interpreted, translated;
    power_on(start, *cart, Region::Ntsc);
    for (int i = 0; i < kWarmUp; ++i) run_frame(start, *cart, buttons_at(i), 0, nullptr);

    std::vector<double> slow, fast, ratio;
    for (int i = 0; i < kRounds; ++i) {
        slow.push_back(frames_per_second(start, *cart, false, interpreted));
        fast.push_back(frames_per_second(start, *cart, true, translated));
        ratio.push_back(fast.back() / slow.back());
        if (std::memcmp(interpreted.ram, translated.ram, sizeof start.ram) != 0 ||
            interpreted.clock != translated.clock) {
            std::printf("the two disagree: no times\n");
            return 1;
        }
    }
    for (auto* v : {&slow, &fast, &ratio}) std::sort(v->begin(), v->end());
    std::printf("interpreted %.0f frames/s, translated %.0f; ratio %.2f (%.2f to %.2f)\n", slow[kRounds / 2],
                fast[kRounds / 2], ratio[kRounds / 2], ratio.front(), ratio.back());
    return 0;
}
