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

/// What registers say of the picture. To write to one what it holds changes nothing that is drawn.
struct Registers {
    u16 t = 0;
    u8 fine_x = 0;
    u8 show_background = 1, show_sprites = 1, hide_left_background = 0, hide_left_sprites = 0;
    u8 tall = 0, background_table = 0, sprite_table = 0;
    bool operator==(const Registers&) const = default;
};

/// The picture unit. It lies idle between accesses that it matters to and is brought up to a dot by `sync`.
struct Ppu : Registers {
    i64 done = 0;    ///< dots executed since the reset
    i64 origin = 0;  ///< line L, dot c is executed as number `origin + L * kDots + c`; line 261 is pre-render
    u16 v = 0, increment = 1;
    u8 first_write = 1, read_buffer = 0, oam_addr = 0;
    u8 nmi = 0, even = 0, vblank = 0;
    u8 hit = 0;       ///< sprite 0 has met the background; the lines where it did may not be drawn yet
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
    /// The slot that a tile shows everywhere with each of the four palettes, 0xFF if it shows several.
    std::array<std::array<u8, 4>, 512> flat;

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
    alignas(64) u8 blocks[16][48] = {};  ///< 16 pixels of each slot of the background: red, green, blue
    u8 of[32] = {};                      ///< the palette that they belong to,
    bool known = false;                  ///< if any
};

/// What was painted: the tiles of every row and which of them painted a line last. If nobody else writes to
/// the screen, what has not changed is not painted again. Lines are kept in blocks of 16 pixels.
struct Shown {
    static constexpr u8 kUnknown = 0xFF;  ///< a line of which no row is the painter
    static constexpr u16 kEverywhere = 0xFFFF;
    using Blocks = u8 __attribute__((vector_size(16)));  ///< a byte for each

    /// Everything that the pixels of a row depend on, but for the colours.
    struct alignas(64) Row {
        u8 names[34];  ///< of the tiles from the left edge on
        u8 slots[18];  ///< of two tiles each; the first is of one tile if `odd` is 1
        u8 odd, fine_x, fine_y, lines, table, hidden;
        u8 none[6] = {};  ///< so that all bytes can be compared at once
    };
    Row rows[kHeight] = {};     ///< by the line that a row began at
    Blocks flat[kHeight] = {};  ///< of those, the slot of a block that shows one, 0xFF of another
    u16 plain[kHeight] = {};    ///< of those, a bit for each block that shows one slot
    u8 painter[kHeight];        ///< the first line of a line's row
    u16 stale[kHeight] = {};    ///< a bit for each block that shows something else: sprites, old colours
    u8 palette[32] = {};
    const u8* pixels = nullptr;  ///< the screen; another one is painted whole

    /// Whether the screen keeps what is painted. If not, all of it is painted in every frame.
    const bool kept;

    explicit Shown(bool kept = true) : kept(kept) { forget(); }
    void forget() { std::memset(painter, kUnknown, sizeof painter); }
    /// Whether the eight lines from `top` on show the row that begins there, and nothing else.
    bool untouched(int top) const {
        constexpr u16 kNone[8] = {};
        return load64(painter + top) == splat(static_cast<u8>(top)) &&
               std::memcmp(stale + top, kNone, sizeof kNone) == 0;
    }
    /// A bit for each byte, all of which are 0 or 0xFF.
    static u16 bits_of(Blocks bytes) {
        u64 half[2];
        std::memcpy(half, &bytes, sizeof half);
        auto gather = [](u64 v) { return (v & 0x8040201008040201ull) * splat(1) >> 56; };
        return static_cast<u16>(gather(half[0]) | gather(half[1]) << 8);
    }
    /// A bit for each block in which the row that begins at line `top` is another than before.
    u16 put(int top, const Row& row, const Game& game);
    /// From now on colours are those of `now`.
    void recolour(const u8* now);
};

struct Console {
    std::shared_ptr<const Game> game;
    const Cartridge* cartridge = nullptr;
    bool has_wram = false;
    State state;
    Pad pads[2];
    Screen screen;
    Colours colours;
    Shown* shown = nullptr;  ///< of the screen, if anybody keeps it
    /// Pass over loops that wait and draw late what is not asked for; off in the tests that compare with it
    /// on.
    bool skip_idle_loops = true;
    bool translate = true;  ///< run native code where there is any
    i64 skipped = 0;        ///< cycles passed over in loops that poll the status, since the console was made
};

/// Like nes-py's reset: memory and screen keep what they hold.
void reset(Console& k);
/// One step with the buttons that the pads hold.
void step(Console& k);

namespace ppu {
/// Executes every dot before `target` and draws.
void sync(Console& k, i64 target);
/// What the CPU does once every dot before `target` has been executed.
u8 read(Console& k, u16 addr, i64 target);
void write(Console& k, u16 addr, u8 value, i64 target);
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
