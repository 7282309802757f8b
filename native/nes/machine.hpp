#pragma once
#include <cstddef>
#include <string>
#include <type_traits>

#include "nes/apu.hpp"
#include "nes/cartridge.hpp"
#include "nes/ppu.hpp"
#include "nes/timing.hpp"

namespace wz {

/// Controller bits, as in nes-py and .fm2 movies.
enum Button : u8 { kA = 1, kB = 2, kSelect = 4, kStart = 8, kUp = 16, kDown = 32, kLeft = 64, kRight = 128 };

/// How the last instruction bears on the interrupts polled at its end.
enum class Tail : u8 {
    Normal,       ///< polled in the cycle before the last
    TakenBranch,  ///< a taken branch within its page polls a cycle earlier
    FlagChange,   ///< CLI, SEI and PLP change the I flag too late for their own poll
    NoPoll        ///< BRK and interrupt sequences do not poll: one instruction always follows
};

/// The whole console as plain data: no pointers, copyable with memcpy. The cartridge is shared and read-only.
/// Times are in CPU cycles since power-on.
struct Machine {
    i64 clock = 0;
    i64 limit = 0;           ///< the CPU runs until here, then looks at what is due
    i64 frame_end = kNever;  ///< first cycle after the vertical blank began; kNever once it has
    i64 frame_begin = 0;  ///< by then the PPU must be asked where the next frame begins; kNever once it has
    i64 nmi_sample = kNever;    ///< cycle at whose end the NMI edge is (or will be) seen
    i64 scheduled_origin = -1;  ///< the PPU frame the three times above were computed for
    u16 pc = 0;
    u8 a = 0, x = 0, y = 0, s = 0, p = 0;
    u8 jammed = 0;
    Tail tail = Tail::Normal;
    u8 tail_interrupt_disable = 0;  ///< the I flag that a FlagChange poll sees
    u16 stolen = 0;  ///< cycles of sprite DMA behind the last instruction: its poll came before them
    Region region = Region::Ntsc;
    u8 buttons[2] = {}, pad_shift[2] = {}, pad_strobe = 0;
    u8 pad_read = 0;   ///< the controllers were read in this frame
    u8 lagged = 0;     ///< they were not read in the last whole frame
    u32 frame = 0;     ///< frames completed
    u8 wram_used = 0;  ///< the program has written to `wram`
    Apu apu;
    u8 ram[0x800] = {};
    Ppu ppu;  ///< ends with the memories that few cartridges use
    u8 wram[0x2000] = {};
};
static_assert(std::is_trivially_copyable_v<Machine>);

/// `to = from`, for two machines with the same cartridge, leaving out memories that neither has used.
inline void copy_machine(Machine& to, const Machine& from, const Cartridge& c) {
    constexpr std::size_t used = offsetof(Machine, ppu) + offsetof(Ppu, vram) + 0x800;
    if (c.chr_is_ram || c.mirroring == Mirroring::FourScreen) {
        to = from;
        return;
    }
    if (to.wram_used || from.wram_used) std::memcpy(to.wram, from.wram, sizeof to.wram);
    std::memcpy(static_cast<void*>(&to), &from, used);
}

/// Switches the exact shortcuts off, for the tests that compare with them on.
struct RunOptions {
    bool skip_idle_loops = true;
    bool translate = true;  ///< run native code, which skips idle loops too, where there is any
};

/// Puts the console in its state at the first instruction after switching on. Memory is zero.
void power_on(Machine& m, const Cartridge& c, Region region);
/// The reset button.
void press_reset(Machine& m, const Cartridge& c);

/// Runs from one vertical blank to the next with the buttons held. Draws into `out` unless it is null: timing
/// and memory are the same either way.
void run_frame(Machine& m, const Cartridge& c, u8 buttons1, u8 buttons2, Frame* out, RunOptions options = {});

/// Reads the CPU's address space without side effects; registers read as the last value on their bus.
u8 peek(const Machine& m, const Cartridge& c, u16 addr);

/// Checks that a machine loaded from outside can be run without harm: every index and time is in range.
/// Returns an empty string or what is wrong.
std::string invalid_state(const Machine& m);

}  // namespace wz
