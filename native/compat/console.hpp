#pragma once
#include <array>
#include <memory>
#include <vector>

#include "nes/machine.hpp"
#include "simd/kernels.hpp"

/// The console as nes-py 8 emulates it, mistakes included: a script written for that package sees the same
/// bytes and pixels at the same step. docs/compat.md lists where it differs from the hardware.
namespace wz::compat {

inline constexpr int kWidth = 256, kHeight = 240;
inline constexpr int kDots = 341;             ///< dots a line, counted from 1 as nes-py counts them
inline constexpr i64 kCyclesPerStep = 29781;  ///< a step ends here, wherever the frame is by then

/// The picture unit. It lies idle between register accesses and is brought up to a dot by `sync`.
struct Ppu {
    i64 done = 0;    ///< dots executed since the reset
    i64 origin = 0;  ///< line L, dot c is executed as number `origin + L * kDots + c`; line 261 is pre-render
    u16 v = 0, t = 0, increment = 1;
    u8 fine_x = 0, first_write = 1, read_buffer = 0, oam_addr = 0;
    u8 show_background = 1, show_sprites = 1, hide_left_background = 0, hide_left_sprites = 0;
    u8 tall = 0, nmi = 0, background_table = 0, sprite_table = 0;
    u8 even = 0, vblank = 0, hit = 0;
    u8 listed = 0;    ///< sprites on the current line
    u8 list[8] = {};  ///< they were chosen at the end of the line before, the last line's serve line 0 too
    u8 palette[32] = {};
    u8 oam[256] = {};
    u8 vram[0x1000] = {};
};

/// What nes-py backs up and restores, but for the screen.
struct State {
    i64 clock = 0;  ///< cycle in which the next instruction runs, all of it at once
    i64 end = 0;    ///< cycle in which the current step ends
    u16 pc = 0;
    u8 a = 0, x = 0, y = 0, s = 0;
    u8 p = 0;       ///< in nes-py's order: N V 1 B D I Z C from bit 0 up
    u8 status = 0;  ///< the PPU status that was read last
    Ppu ppu;
    Machine shell;  ///< RAM and WRAM are where translated code expects them; nothing else of it is used
};

/// A cartridge, and its program as native code that counts cycles as nes-py does; null where there is none.
struct Game {
    std::shared_ptr<const Cartridge> cartridge;
    std::shared_ptr<jit::Translation> translation;

    /// Those of an image in use are shared. Throws RomError.
    static std::shared_ptr<const Game> of(std::span<const u8> image);
};

struct Pad {
    u8 buttons = 0, bits = 0, strobe = 1;
};

/// Where pixels go: four bytes each (blue, green, red, 0), as nes-py keeps them, or three (red, green, blue).
struct Screen {
    u8* pixels = nullptr;
    bool rgb = false;
    std::size_t size() const { return std::size_t{kWidth} * kHeight * (rgb ? 3 : 4); }
};

/// The 32 palette entries as colours. Other bits of a slot are ignored.
struct Colours : simd::Colours {
    u8 of[32] = {};      ///< the palette that they belong to,
    bool known = false;  ///< if any
};

/// What is on a screen that nobody else writes to, so that what has not changed is not painted again: the
/// tiles of every row and who painted a line last.
struct Shown {
    static constexpr u8 kUnknown = 0xFF;  ///< sprites, or part of a line
    using Row = std::array<u8, 64>;

    Row rows[kHeight];    ///< by the line that a row began at
    u8 painter[kHeight];  ///< the row's first line
    u8 palette[32] = {};
    const u8* pixels = nullptr;  ///< the screen; another one is painted whole

    Shown() { forget(); }
    void forget() { std::memset(painter, kUnknown, sizeof painter); }
};

struct Console {
    std::shared_ptr<const Game> game;
    const Cartridge* cartridge = nullptr;
    bool has_wram = false;
    State state;
    Pad pads[2];
    Screen screen;
    Colours colours;
    std::unique_ptr<Shown> shown;  ///< null where others may write to the screen
    bool skip_idle_loops = true;   ///< off in the tests that compare with it on
    bool translate = true;         ///< run native code where there is any
    i64 skipped = 0;  ///< cycles passed over in loops that poll the status, since the console was made
};

/// Like nes-py's reset: memory and screen keep what they hold.
void reset(Console& k);
/// One step with the buttons that the pads hold.
void step(Console& k);

namespace ppu {
/// Executes every dot before `target` and draws.
void sync(Console& k, i64 target);
u8 read(Console& k, u16 addr);
void write(Console& k, u16 addr, u8 value);
void dma(Ppu& p, const u8* page);
/// No read of the status before this dot has been executed sees another value than one now would.
i64 status_changes(const Console& k);
}  // namespace ppu

/// Registers outside RAM and ROM. What nes-py does not know reads as 0; there is no sound.
u8 read_register(Console& k, u16 addr, i64 cycle);
/// Returns the cycles that the CPU stands still afterwards.
int write_register(Console& k, u16 addr, u8 value, i64 cycle);
/// At the head, at `clock`, of a loop that polls the status with turns of so many cycles: passes over turns
/// that would read the same again and begin before `limit`. Returns their cycles.
i64 skip_polls(Console& k, i64 clock, i64 turn, i64 limit);

namespace cpu {
/// Runs instructions until `limit`.
template <bool SkipIdle>
void execute(Console& k, i64 limit);
/// The same by native code, to the cycle.
void execute_translated(Console& k, i64 limit);
void interrupt(Console& k);
}  // namespace cpu

}  // namespace wz::compat
