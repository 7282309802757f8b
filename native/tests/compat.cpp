// The console of nes-py with all its shortcuts (waiting loops skipped, native code, lines drawn late and only
// where they change) against itself without any: random programs and the game, the same memory and pixels at
// every step.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "compat/console.hpp"
#include "random_program.hpp"

namespace {

using namespace wz;
using namespace wz::test;

struct Player {
    std::vector<u8> pixels, others;
    std::unique_ptr<compat::Shown> shown, shown_by_others;
    compat::Console k;

    Player(const std::shared_ptr<const compat::Game>& game, bool fast, bool kept = true)
        : pixels(compat::Screen{nullptr, fast}.size()),
          others(pixels),
          shown(std::make_unique<compat::Shown>(kept)),
          shown_by_others(std::make_unique<compat::Shown>(kept)) {
        k.game = game;
        k.cartridge = game->cartridge.get();
        k.screen = {pixels.data(), fast};
        k.skip_idle_loops = k.translate = fast;
        if (fast) k.shown = shown.get();
        compat::reset(k);
    }
    /// Goes on with the other screen, of which it is known what it shows.
    void swap_screens() {
        pixels.swap(others);
        shown.swap(shown_by_others);
        k.screen.pixels = pixels.data();
        k.shown = shown.get();
    }
};

const char* difference(const Player& fast, const Player& slow) {
    const compat::State &f = fast.k.state, &s = slow.k.state;
    if (f.clock != s.clock || f.pc != s.pc || f.p != s.p || f.status != s.status)
        return "the program counter";
    if (f.a != s.a || f.x != s.x || f.y != s.y || f.s != s.s) return "a register";
    if (std::memcmp(f.shell.ram, s.shell.ram, sizeof f.shell.ram) != 0) return "RAM";
    const compat::Ppu &p = f.ppu, &q = s.ppu;
    if (static_cast<const compat::Registers&>(p) != q || p.done != q.done || p.v != q.v || p.hit != q.hit ||
        p.vblank != q.vblank || p.first_write != q.first_write || p.nmi != q.nmi)
        return "the picture unit";
    for (std::size_t i = 0; i < std::size_t{compat::kWidth} * compat::kHeight; ++i)
        for (std::size_t c = 0; c < 3; ++c)
            if (fast.pixels[3 * i + c] != slow.pixels[4 * i + 2 - c]) return "a pixel";
    return nullptr;
}

/// Whether all are the same for so many steps. Now and then the fast one gets another screen, that of a third
/// one is overwritten before every step, and a fourth one has two in turns.
bool same(const std::vector<u8>& image, int steps, Random& random, const char* name) {
    const auto game = compat::Game::of(image);
    Player fast(game, true), slow(game, false), painted(game, true, false), turns(game, true);
    std::vector<u8> other;
    u8 held = 0;
    for (int i = 0; i < steps; ++i) {
        if (i % 16 == 0) held = static_cast<u8>(i < 100 ? 8 * (i / 16 % 2) : random() & ~12u);
        for (Player* player : {&fast, &slow, &painted, &turns}) player->k.pads[0].buttons = held;
        if (i % 13 == 12) {
            fast.pixels.swap(other);
            fast.pixels.assign(other.size(), 0xAA);
            fast.k.screen.pixels = fast.pixels.data();
        }
        compat::step(fast.k);
        compat::step(slow.k);
        std::memset(painted.pixels.data(), 0xAA, painted.pixels.size());
        compat::step(painted.k);
        turns.swap_screens();
        compat::step(turns.k);
        for (const Player* player : {&fast, &painted, &turns})
            if (const char* what = difference(*player, slow)) {
                std::printf("%s, step %d: %s differs\n", name, i, what);
                return false;
            }
    }
    return true;
}

}  // namespace

int main(int argc, char** argv) {
    const int programs = argc > 1 ? std::atoi(argv[1]) : 150;
    const Kind kinds[] = {{"background", false, false, true},
                          {"sprites", true, false, true},
                          {"careful sprites", true, false, false}};
    int failed = 0;
    for (int seed = 1; seed <= programs; ++seed) {
        Random random(static_cast<unsigned>(seed));
        const Kind kind = kinds[seed % 3];
        const Program program(random, kind);
        failed += !same(random_image(random, program), 30, random, kind.name);
    }
    if (failed) return 1;
    std::printf("%d random programs the same\n", programs);
    const char* path = std::getenv("WARPZONE_ROM");
    if (!path) {
        std::printf("WARPZONE_ROM is not set: the game was not compared\n");
        return 0;
    }
    std::ifstream file(path, std::ios::binary);
    const std::vector<u8> rom{std::istreambuf_iterator<char>(file), {}};
    Random random(7);
    const int steps = argc > 2 ? std::atoi(argv[2]) : 1500;
    if (!same(rom, steps, random, "the game")) return 1;
    std::printf("%d steps of the game the same\n", steps);
    return 0;
}
