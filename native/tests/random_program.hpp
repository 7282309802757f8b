#pragma once
#include <algorithm>
#include <array>
#include <cstring>
#include <initializer_list>
#include <random>
#include <vector>

#include "nes/types.hpp"

// Random programs that poke at every register.
namespace wz::test {

using Random = std::mt19937;

/// What a random program may touch. Sprites are chosen a line ahead on the hardware and on the line itself in
/// the engine, so programs that show them leave the registers that choose them alone while lines are drawn,
/// unless they may write to them anywhere.
struct Kind {
    const char* name;
    bool sprites, sound, anywhere;
    bool careful() const { return sprites && !anywhere; }
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
        return kind_.careful() ? static_cast<u8>((v & ~0x28) | sprite_mode_) : v;
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
                return set(kind_.careful() ? 0x2005 : 0x2000, control());
            case 2:
                return set(kind_.careful() ? 0x2005 : 0x2001, mask());
            case 3:
                return set(0x2005, byte());
            case 4:
                if (below(3)) return set(0x2006, byte());
                emit({0xAD, 0x02, 0x20});
                set(0x2006, 0x3F);
                set(0x2006, byte());
                return set(0x2007, byte());
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
                const int reg = kind_.careful() ? (below(2) ? 5 : 7) : 5 + below(3);
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

/// A cartridge with that program and random tiles.
inline std::vector<u8> random_image(Random& random, const Program& program) {
    const u8 header[8] = {'N', 'E', 'S', 0x1A, 2, 1, static_cast<u8>(random() & 1)};
    std::vector<u8> image(16 + program.prg.size() + 0x2000);
    std::copy_n(header, sizeof header, image.begin());
    std::copy(program.prg.begin(), program.prg.end(), image.begin() + 16);
    u8* const tiles = image.data() + 16 + program.prg.size();
    for (int i = 0; i < 0x2000; ++i) tiles[i] = static_cast<u8>(random() & random());
    for (int i = 0; i < 0x2000; i += 32)  // some solid, some empty
        if (random() % 3 == 0) std::memset(tiles + i, random() & 1 ? 0xFF : 0, 16);
    return image;
}

}  // namespace wz::test
