#pragma once
#include "nes/cartridge.hpp"
#include "nes/timing.hpp"

namespace wz {

/// A drawn picture, one byte a pixel, with room at both ends of a line so that tiles are stored whole.
struct Frame {
    static constexpr int kWidth = 256, kHeight = 240, kMargin = 8, kStride = 272;
    alignas(64) u8 pixels[kStride * kHeight + kMargin];
    u8 emphasis[kHeight];  ///< colour emphasis bits (0..7) of each line
    /// What a pixel is: null for its NES colour number (0..63), else a table that has the byte for colour i
    /// under emphasis e at [64 e + i], and everything is drawn through it.
    const u8* encoding = nullptr;

    /// Takes lines while they are drawn.
    class Reader {
      public:
        virtual ~Reader() = default;
        /// Another picture begins.
        virtual void begin() = 0;
        /// The first `lines` lines are complete.
        virtual void read(const Frame& frame, int lines) = 0;
    };
    /// With a reader only the newest kNewest lines are kept, which then stay in the nearest cache.
    Reader* reader = nullptr;
    static constexpr int kNewest = 16;
    static_assert((kNewest & (kNewest - 1)) == 0);
    static constexpr int among_newest(int y) { return y & (kNewest - 1); }

    /// What the 32 palette entries look like here, and what that was found for.
    struct Values {
        u8 of[32] = {}, palette[32] = {};
        const u8* encoding = nullptr;
        int mask = -1;
    } values;

    u8* line(int y) { return pixels + place(y) * kStride + kMargin; }
    const u8* line(int y) const { return pixels + place(y) * kStride + kMargin; }
    void complete(int lines) {
        if (reader) reader->read(*this, lines);
    }

  private:
    int place(int y) const { return reader ? among_newest(y) : y; }
};

/// The picture unit. It lies idle between register accesses: `ppu::catch_up` brings it to a given dot, a
/// whole band of lines at a time. Dots are counted from power-on; `origin` is the count at line 0, dot 0 of
/// this frame, and the pre-render line is the frame's last.
struct Ppu {
    u8 ctrl = 0, mask = 0, oam_addr = 0, fine_x = 0;
    u8 write_toggle = 0, read_buffer = 0;
    u8 vblank = 0;       ///< status bit 7
    u8 vblank_lost = 0;  ///< a read one dot too early keeps the flag from rising this frame
    u8 odd_frame = 0;
    u8 pipeline_live =
        0;             ///< the shift registers below hold what the hardware's would; else they follow from v
    u16 v = 0, t = 0;  ///< current and next VRAM address (yyy NN YYYYY XXXXX)
    u16 shift_lo = 0, shift_hi = 0, shift_attr_lo = 0, shift_attr_hi = 0;
    u8 bus = 0;  ///< what the last access left on the data pins
    i64 origin = 0;
    i64 done = 0;  ///< dots executed so far

    /// Status bits 6 and 5 rise when the dot is executed. Forecast from the state at `done`, valid until a
    /// write.
    i64 sprite_zero_dot = kNever, overflow_dot = kNever;
    u8 forecast_valid = 0;  ///< which of the two (kForecastSpriteZero, kForecastOverflow) are forecast

    u32 bus_refreshed[8] = {};  ///< frame in which each bit of `bus` was last driven
    u8 palette[32] = {};
    u8 oam[256] = {};
    u8 vram[0x1000] = {};
    u8 chr_ram[0x2000] = {};
};

namespace ppu {

enum : u8 {
    kNmiEnable = 0x80,
    kTallSprites = 0x20,
    kBackgroundTable = 0x10,
    kSpriteTable = 0x08,
    kIncrement32 = 0x04
};
enum : u8 {
    kShowBackground = 0x08,
    kShowSprites = 0x10,
    kRendering = 0x18,
    kLeftBackground = 0x02,
    kLeftSprites = 0x04
};

inline bool rendering(const Ppu& p) { return p.mask & kRendering; }
inline i64 vblank_dot(const Ppu& p) { return p.origin + i64{kVblankLine} * kDotsPerLine + 1; }
inline i64 clear_dot(const Ppu& p, const Timing& t) { return p.origin + i64{t.lines - 1} * kDotsPerLine + 1; }
inline i64 frame_dots(const Timing& t) { return i64{t.lines} * kDotsPerLine; }

// How the address register walks over the nametables.
inline u16 next_column(u16 v) { return static_cast<u16>((v & 0x1F) == 31 ? (v & ~0x1F) ^ 0x400 : v + 1); }
inline u16 previous_column(u16 v) { return static_cast<u16>((v & 0x1F) == 0 ? (v | 0x1F) ^ 0x400 : v - 1); }
inline u16 next_row(u16 v) {
    if ((v & 0x7000) != 0x7000) return static_cast<u16>(v + 0x1000);
    v &= 0x0FFF;
    const int row = (v >> 5) & 31;
    if (row == 29) return static_cast<u16>((v & ~0x3E0) ^ 0x800);
    if (row == 31) return static_cast<u16>(v & ~0x3E0);
    return static_cast<u16>(v + 0x20);
}
inline constexpr u16 kHorizontal = 0x041F, kVertical = 0x7BE0;
inline u16 take(u16 v, u16 t, u16 bits) { return static_cast<u16>((v & ~bits) | (t & bits)); }

inline const u8& nametable_byte(const Ppu& p, const Cartridge& c, u16 addr) {
    return p.vram[c.nametable[(addr >> 10) & 3] + (addr & 0x3FF)];
}
inline const u8* pattern_bytes(const Ppu& p, const Cartridge& c) {
    return c.chr_is_ram ? p.chr_ram : c.chr.data();
}

/// One background tile row as the fetch unit sees it at address v.
struct TileRow {
    u8 lo, hi, attribute;
};
inline TileRow fetch_tile(const Ppu& p, const Cartridge& c, u16 v) {
    const u8 index = nametable_byte(p, c, v);
    const u8 attributes =
        nametable_byte(p, c, static_cast<u16>((v & 0xC00) | 0x3C0 | ((v >> 4) & 0x38) | ((v >> 2) & 7)));
    const u8* row = pattern_bytes(p, c) + ((p.ctrl & kBackgroundTable) ? 0x1000 : 0) + index * 16 + (v >> 12);
    return {row[0], row[8], static_cast<u8>((attributes >> (((v >> 4) & 4) | (v & 2))) & 3)};
}

/// The address register's walk over dots [from, to) of a line that is fetched (visible or pre-render).
void walk_address(Ppu& p, int from, int to, bool prerender);

/// Draws whole lines [first, first + count) and moves v across them. `p.done` is at the first one's dot 0.
void draw_lines(Ppu& p, const Cartridge& c, Frame& out, int first, int count);
/// Runs dots [from, to) of visible line y one by one. Draws into `out` unless it is null; returns the first
/// dot with a sprite-0 hit, or kNever.
i64 run_dots(Ppu& p, const Cartridge& c, Frame* out, int y, int from, int to);

/// Before a write changes v or what fetching from it gives: tiles fetched so far stay in the shift registers.
void keep_pipeline(Ppu& p, const Cartridge& c, const Timing& t);

/// Computes when the sprite-0 and overflow flags will rise if nothing is written until then.
void forecast(Ppu& p, const Cartridge& c);

/// Executes every dot before `target`. Draws into `out` unless it is null.
void catch_up(Ppu& p, const Cartridge& c, const Timing& t, Frame* out, i64 target);

enum : u8 { kForecastSpriteZero = 1, kForecastOverflow = 2, kForecastBoth = 3 };

inline void ensure_forecast(Ppu& p, const Cartridge& c) {
    if (p.forecast_valid != kForecastBoth) forecast(p, c);
}

/// A write is about to change the background under sprite 0: a hit still to come must be forecast anew.
inline void drop_hit_forecast(Ppu& p) {
    if (p.sprite_zero_dot >= p.done) p.sprite_zero_dot = kNever;
    p.forecast_valid &= static_cast<u8>(~kForecastSpriteZero);
}
/// A write is about to change sprites or what is shown at all: both flags still to come must be forecast
/// anew.
inline void drop_forecast(Ppu& p) {
    drop_hit_forecast(p);
    if (p.overflow_dot >= p.done) p.overflow_dot = kNever;
    p.forecast_valid = 0;
}

}  // namespace ppu
}  // namespace wz
