// Random programs that poke at every register, and the game itself, against the reference console: the same
// memory, cycles and pixels, frame by frame, drawn and undrawn, with waiting loops skipped and not,
// translated and not.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>

#include "nes/machine.hpp"
#include "reference.hpp"

namespace {

using namespace wz;
using Random = std::mt19937;

/// What a random program may touch. Sprites are chosen a line ahead on the hardware and on the line itself in
/// the engine, so programs that show them leave the registers that choose them alone while lines are drawn.
struct Kind {
    const char* name;
    bool sprites, sound, anywhere;
};

class Program {
  public:
    Program(Random& random, Kind kind) : random_(random), kind_(kind) {
        at_ = 0x8000;
        emit({0x78, 0xD8, 0xA2, 0xFF, 0x9A});  // SEI CLD LDX #$FF TXS
        wait_for_vblank();
        wait_for_vblank();
        // Tables for the picture: names, attributes, palette, sprites.
        emit({0xA9, 0x20, 0x8D, 0x06, 0x20, 0xA9, 0x00, 0x8D, 0x06, 0x20, 0xA0, 0x08, 0xA2, 0x00});
        const int loop = at_;
        emit({0x8A, 0x5D, 0x00, 0xF0, 0x8D, 0x07, 0x20, 0xCA});  // TXA EOR $F000,X STA $2007 DEX
        branch(0xD0, loop);
        emit({0x88});
        branch(0xD0, loop);
        emit({0xA9, 0x3F, 0x8D, 0x06, 0x20, 0xA9, 0x00, 0x8D, 0x06, 0x20, 0xA2, 0x20});
        const int colours = at_;
        emit({0xBD, 0x20, 0xF0, 0x8D, 0x07, 0x20, 0xCA});
        branch(0xD0, colours);
        emit({0xA2, 0x00});
        const int sprites = at_;
        emit({0xBD, 0x40, 0xF0, 0x9D, 0x00, 0x02, 0xCA});
        branch(0xD0, sprites);
        emit({0xA9, 0x00, 0x8D, 0x03, 0x20, 0xA9, 0x02, 0x8D, 0x14, 0x40});
        wait_for_vblank();
        set(0x2000, control());
        set(0x2001, mask());
        const int start = at_;
        for (int i = 0; i < 120; ++i) block(0);
        jump(start);
        at_ = 0xE000;  // NMI
        emit({0x48, 0x8A, 0x48});
        if (kind_.sprites) {
            set(0x2001, mask());
            if (below(2)) set(0x2000, control());
            emit({0xA9, 0x00, 0x8D, 0x03, 0x20, 0xA9, 0x02, 0x8D, 0x14, 0x40});
            set(0x2005, byte());
            set(0x2005, byte());
        }
        for (int i = below(6); i > 0; --i) block(1);
        emit({0x68, 0xAA, 0x68, 0x40});
        at_ = 0xE800;  // IRQ and BRK
        emit({0x48});
        if (below(4)) emit({0x2C, 0x15, 0x40});
        for (int i = below(3); i > 0; --i) block(2);
        emit({0x68, 0x40});
        for (int i = 0xF000; i < 0xF200; ++i) at(i) = byte();
        for (int i = 0; i < 64; ++i) {
            // Sprites crowd on some lines; a few lie at the edges.
            at(0xF041 + i * 4) = byte();
            at(0xF040 + i * 4) = static_cast<u8>(!kind_.sprites ? 0xF8 : below(3) ? 40 + below(40) : byte());
            if (below(8) == 0) at(0xF043 + i * 4) = static_cast<u8>(248 + below(8));
        }
        const u8 vectors[6] = {0x00, 0xE0, 0x00, 0x80, 0x00, 0xE8};
        for (int i = 0; i < 6; ++i) at(0xFFFA + i) = vectors[i];
    }
    std::array<u8, 0x8000> prg{};

  private:
    int below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
    u8 byte() { return static_cast<u8>(random_() >> 11); }
    u8& at(int addr) { return prg[static_cast<std::size_t>(addr & 0x7FFF)]; }
    void emit(std::initializer_list<int> bytes) {
        for (int b : bytes) at(at_++) = static_cast<u8>(b);
    }
    void set(int reg, u8 v) { emit({0xA9, v, 0x8D, reg & 255, reg >> 8}); }
    void keep_a() { emit({0x9D, 0x00, 0x03 + below(4), 0xE8}); }  // STA $0300,X INX
    void branch(int op, int to) {
        emit({op, 0});
        at(at_ - 1) = static_cast<u8>(to - at_);
    }
    void jump(int to) { emit({0x4C, to & 255, to >> 8}); }
    void wait_for_vblank() {
        const int here = at_;
        emit({0x2C, 0x02, 0x20});
        branch(0x10, here);
    }
    u8 control() {
        u8 v = byte();
        if (kind_.sprites || below(4)) v |= 0x80;
        return kind_.sprites && !kind_.anywhere ? static_cast<u8>((v & ~0x28) | sprite_mode_) : v;
    }
    u8 mask() {
        u8 v = byte();
        if (below(4)) v |= 0x08;
        return static_cast<u8>(kind_.sprites ? v : v & ~0x10);
    }
    void delay() {
        emit({0xA0, below(3) ? 1 + below(30) : byte() | 1});
        const int here = at_;
        emit({0x88});
        branch(0xD0, here);
    }
    /// `where`: 0 main program, 1 NMI handler, 2 IRQ handler.
    void block(int where) {
        switch (below(kind_.sound ? 22 : 14)) {
            case 0:
                return delay();
            case 1:
                return set(kind_.sprites ? 0x2005 : 0x2000, control());
            case 2:
                return set(kind_.sprites ? 0x2005 : 0x2001, mask());
            case 3:
                return set(0x2005, byte());
            case 4:
                return set(0x2006, byte());
            case 5:
                return set(0x2007, byte());
            case 6:
                emit({0xAD, 0x02, 0x20});
                return keep_a();
            case 7:
                emit({0xAD, 0x07, 0x20});
                return keep_a();
            case 8: {  // an instruction that reads and writes a register, perhaps through the wrong page
                       // first
                static constexpr int kOps[] = {0xEE, 0x0E, 0xCE, 0x2E, 0x9D, 0xBD,
                                               0x1D, 0xFE, 0x1F, 0xB9, 0x99};
                const int op = kOps[below(11)];
                const int reg = kind_.sprites ? (below(2) ? 5 : 7) : 5 + below(3);
                if (op == 0xEE || op == 0x0E || op == 0xCE || op == 0x2E) return emit({op, reg, 0x20});
                // X or Y is whatever it is: the access may go anywhere in $2000-$21FF, so keep it on this
                // register.
                emit({0xA2, below(2) ? 0xF8 : 8, 0xA0, below(2) ? 0xF8 : 8});
                return emit({op, reg + 8 * below(31), 0x20 + below(30)});
            }
            case 9:
                return wait_or_poll(where);
            case 10:
                return emit({0xAD, 0x02, 0x20, 0x8D, 0x06, 0x20});
            case 11: {
                static constexpr int kQuick[] = {0xEA, 0x18, 0x38, 0xE8, 0x8A, 0x0A, 0x4A, 0xAA};
                for (int i = below(5); i >= 0; --i) emit({kQuick[below(8)]});
                return;
            }
            case 12:
                return emit({0xE6, 0x10, 0xA5, 0x10, 0x65, 0x11, 0x85, 0x11});
            case 13:
                return set(0x4016, byte()), emit({0xAD, 0x16, 0x40}), keep_a();
            case 14:
                return set(0x4017, static_cast<u8>(byte() & 0xC0));
            case 15:
                emit({0xAD, 0x15, 0x40});
                return keep_a();
            case 16:
                return set(0x4015, static_cast<u8>(byte() & 15));
            case 17:
                return set(0x4000 + below(16), byte());
            case 18:
                return emit({0x58});
            case 19:
                return emit({0x78});
            case 20:
                return emit({0x08, 0x28});
            default:
                return emit({0x00, 0xEA});
        }
    }
    void wait_or_poll(int where) {
        if (where != 0 || below(3)) return emit({0x2C, 0x02, 0x20, 0x08, 0x68}), keep_a();
        wait_for_vblank();
    }

    Random& random_;
    Kind kind_;
    u8 sprite_mode_ = static_cast<u8>((random_() & 1 ? 0x20 : 0) | (random_() & 1 ? 8 : 0));
    int at_ = 0;
};

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

std::vector<u8> random_image(Random& random) {
    std::vector<u8> chr(0x2000);
    for (u8& b : chr) b = static_cast<u8>(random() & random());
    for (int i = 0; i < 0x2000; i += 32)  // some tiles solid, some empty
        if (random() % 3 == 0) std::memset(chr.data() + i, random() & 1 ? 0xFF : 0, 16);
    return chr;
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
        std::vector<u8> image = {'N', 'E', 'S', 0x1A, 2, 1, static_cast<u8>(random() & 1), 0, 0, 0,
                                 0,   0,   0,   0,    0, 0};
        image.insert(image.end(), program.prg.begin(), program.prg.end());
        const std::vector<u8> chr = random_image(random);
        image.insert(image.end(), chr.begin(), chr.end());
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
