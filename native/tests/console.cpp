// Random programs that poke at every register, and the game itself, against the reference console: the same
// memory, cycles and pixels, frame by frame, drawn and undrawn, with waiting loops skipped and not,
// translated and not.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>

#include "nes/machine.hpp"
#include "random_program.hpp"
#include "reference.hpp"

namespace {

using namespace wz;
using namespace wz::test;

int differences(const Machine& m, const Frame* drawn, const reference::Console& r) {
    int wrong = 0;
    auto check = [&](bool same, const char* what) {
        if (!same && ++wrong <= 6) std::printf("    %s differs\n", what);
    };
    check(m.clock == r.cycle, "the cycle count");
    check(m.pc == r.cpu.pc, "pc");
    check(m.a == r.cpu.a && m.x == r.cpu.x && m.y == r.cpu.y && m.s == r.cpu.s, "a register");
    if ((m.p ^ r.cpu.p) & ~(reference::B | reference::U))
        std::printf("    flags %02X, reference %02X, at %04X\n", m.p, r.cpu.p, m.pc), ++wrong;
    for (int i = 0; i < 0x800; ++i)
        if (m.ram[i] != r.ram[static_cast<std::size_t>(i)]) {
            std::printf("    RAM at %04X: %02X, reference %02X\n", i, m.ram[i],
                        r.ram[static_cast<std::size_t>(i)]);
            if (++wrong > 6) break;
        }
    check(std::memcmp(m.ppu.palette, r.ppu.palette, 32) == 0, "the palette");
    check(std::memcmp(m.ppu.vram, r.ppu.vram, 0x800) == 0, "video memory");
    check(std::memcmp(m.ppu.oam, r.ppu.oam, 256) == 0, "sprite memory");
    if (drawn)
        for (int y = 0; y < 240; ++y)
            for (int x = r.ppu.unsure[y] ? 256 : 0; x < 256; ++x)
                if (drawn->line(y)[x] != r.ppu.pixels[y][x]) {
                    std::printf("    pixel %d,%d: %02X, reference %02X\n", x, y, drawn->line(y)[x],
                                r.ppu.pixels[y][x]);
                    if (++wrong > 6) return wrong;
                    x = 256;
                }
    return wrong;
}

/// Runs both for `frames` frames, one drawing and skipping waits as the seed says. Returns the first bad
/// frame or -1.
int compare(const Cartridge& cart, Region region, const u8* palette, const std::vector<u8>& buttons,
            int frames, bool draw, bool skip, bool translate, int draw_every = 1) {
    auto m = std::make_unique<Machine>();
    auto frame = std::make_unique<Frame>();
    power_on(*m, cart, region);
    auto r = std::make_unique<reference::Console>(cart.prg.data(), cart.chr.data(), cart.nametable,
                                                  region == Region::Pal, palette);
    RunOptions options;
    options.skip_idle_loops = skip;
    options.translate = translate;
    for (int i = 0; i < frames; ++i) {
        const u8 pressed =
            static_cast<std::size_t>(i) < buttons.size() ? buttons[static_cast<std::size_t>(i)] : 0;
        const bool drawn = draw && i % draw_every == 0;
        run_frame(*m, cart, pressed, 0, drawn ? frame.get() : nullptr, options);
        r->buttons[0] = pressed;
        while (r->cycle < m->clock && !r->cpu.jammed) r->step();
        // From there on the last byte on the bus is executed, which the engine follows only a few steps.
        if (r->strayed || r->cpu.jammed) return -1;
        if (differences(*m, drawn ? frame.get() : nullptr, *r)) return i;
    }
    return -1;
}

}  // namespace

int main(int argc, char** argv) {
    const int programs = argc > 1 ? std::atoi(argv[1]) : 30;
    const unsigned first = argc > 2 ? static_cast<unsigned>(std::atoi(argv[2])) : 1;
    const Kind kinds[] = {
        {"background", false, false, true}, {"sound", false, true, true}, {"sprites", true, true, false}};
    int failed = 0;
    for (unsigned seed = first; seed < first + static_cast<unsigned>(programs); ++seed) {
        Random random(seed);
        const Kind kind = kinds[seed % 3];
        const Program program(random, kind);
        const std::vector<u8> image = random_image(random, program);
        const auto cart = Cartridge::parse(image);
        Machine fresh;
        power_on(fresh, *cart, Region::Ntsc);
        const Region region = seed % 5 == 4 ? Region::Pal : Region::Ntsc;
        const int bad =
            compare(*cart, region, fresh.ppu.palette, {}, 12, seed % 4 != 3, seed % 2, seed % 7 < 4);
        if (bad >= 0) {
            std::printf("program %u (%s, %s): frame %d\n", seed, kind.name,
                        region == Region::Pal ? "pal" : "ntsc", bad);
            if (++failed > 5) return 1;
        }
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
    const auto cart = Cartridge::parse(rom);
    Machine fresh;
    power_on(fresh, *cart, Region::Ntsc);
    std::vector<u8> buttons(60, 0);
    Random random(7);
    for (int i = 0; i < 4; ++i) buttons.push_back(kStart);
    while (buttons.size() < 1200) {
        const u8 held = static_cast<u8>(kRight | (random() % 3 ? kB : 0) | (random() % 2 ? kA : 0));
        for (unsigned n = 4 + random() % 30; n > 0; --n) buttons.push_back(held);
    }
    const int frames = argc > 3 ? std::atoi(argv[3]) : 200;
    for (Region region : {Region::Ntsc, Region::Pal})
        for (bool skip : {true, false}) {
            const int bad =
                compare(*cart, region, fresh.ppu.palette, buttons, frames, true, skip, skip, skip ? 1 : 4);
            if (bad >= 0) {
                std::printf("the game, frame %d\n", bad);
                return 1;
            }
        }
    std::printf("%d frames of the game the same\n", frames);
    return 0;
}
