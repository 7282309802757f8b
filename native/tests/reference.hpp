#pragma once
// A slow console for the tests, written from the hardware's description and sharing no code with the engine:
// the processor makes one bus access a cycle, the picture unit runs dot by dot, the sound unit counts every
// cycle. What the engine does by forecasts and whole bands of lines must come out the same.
#include <array>
#include <cstring>

#include "reference_cpu.hpp"
#include "reference_ppu.hpp"

namespace reference {

/// Frame counter and length counters, a cycle at a time.
struct Apu {
    bool pal = false;
    i64 position = 0;  ///< cycles into the sequence
    int delay = 0;     ///< cycles until a write to $4017 acts
    bool five = false, five_next = false, inhibit = false, irq = false;
    int length[4] = {};
    bool halt[4] = {}, enabled[4] = {};
    bool clocked_now[4] = {};  ///< a running counter was clocked in this cycle

    void half() {
        for (int i = 0; i < 4; ++i)
            if (length[i] && !halt[i]) {
                --length[i];
                clocked_now[i] = true;
            }
    }
    /// The part of a cycle before the processor's access.
    void tick() {
        for (bool& c : clocked_now) c = false;
        ++position;
        const i64* at = nullptr;
        static constexpr i64 kSteps[2][4] = {{14913, 29828, 37281, 37282}, {16627, 33252, 41565, 41566}};
        at = kSteps[pal];
        if (position == at[0]) half();
        if (!five) {
            if (position >= at[1] && !inhibit) irq = true;
            if (position == at[1] + 1) half();
            if (position == at[1] + 2) position = 0;
        } else {
            if (position == at[2]) half();
            if (position == at[3]) position = 0;
        }
        if (delay && --delay == 0) {
            five = five_next;
            position = 0;
            if (five) half();
        }
    }
    u8 read() {
        u8 r = 0;
        for (int i = 0; i < 4; ++i)
            if (length[i]) r = static_cast<u8>(r | 1 << i);
        if (irq) r |= 0x40;
        irq = false;
        return r;
    }
    void write(u16 addr, u8 value, i64 cycle) {
        static constexpr int kLength[32] = {10, 254, 20, 2,  40, 4,  80, 6,  160, 8,  60, 10, 14, 12, 26, 14,
                                            12, 16,  24, 18, 48, 20, 96, 22, 192, 24, 72, 26, 16, 28, 32, 30};
        if (addr == 0x4015) {
            for (int i = 0; i < 4; ++i) {
                enabled[i] = value >> i & 1;
                if (!enabled[i]) length[i] = 0;
            }
        } else if (addr == 0x4017) {
            five_next = value & 0x80;
            inhibit = value & 0x40;
            if (inhibit) irq = false;
            delay = (cycle & 1) ? 4 : 3;
        } else if (addr < 0x4010) {
            const int channel = (addr - 0x4000) / 4;
            if (addr % 4 == 0) halt[channel] = value & (channel == 2 ? 0x80 : 0x20);
            if (addr % 4 == 3 && enabled[channel] && !clocked_now[channel])
                length[channel] = kLength[value >> 3];
        }
    }
};

/// The whole console with a mapper-0 cartridge of 32 KB and character ROM.
struct Console : Bus {
    Cpu cpu{*this};
    Ppu ppu;
    Apu apu;
    std::array<u8, 0x800> ram{};
    std::array<u8, 0x2000> wram{};
    const u8* prg;
    bool pal = false;
    i64 cycle = 0;
    u8 data = 0;  ///< last value on the processor's data bus
    u8 buttons[2] = {}, shift[2] = {}, strobe = 0;
    int dma_page = -1;

    Console(const u8* prg_bytes, const u8* chr, std::array<u16, 4> nametable, bool pal_region,
            const u8* palette)
        : prg(prg_bytes), pal(pal_region) {
        ppu.chr = chr;
        ppu.nametable = nametable;
        std::memcpy(ppu.palette, palette, 32);
        ppu.lines = pal ? 312 : 262;
        ppu.drops_dot = !pal;
        apu.pal = pal;
        apu.position = -2;  // as if $00 had been written to $4017 nine cycles before the first instruction
        cpu.s = 0xFD;
        for (int i = 0; i < 7; ++i) {
            begin();
            end();
        }
        cpu.pc = static_cast<u16>(prg[0x7FFC] | prg[0x7FFD] << 8);
    }

    /// Dots done when the access of a cycle happens, and at its end: a cycle has 12 (PAL 16) clocks, a dot 4
    /// (5).
    void dots_until(i64 clocks) {
        const i64 target = clocks / (pal ? 5 : 4);
        while (ppu.dots < target) ppu.tick();
    }
    void begin() {
        apu.tick();
        dots_until((pal ? 16 : 12) * cycle + (pal ? 6 : 4));
    }
    void end() {
        dots_until((pal ? 16 : 12) * cycle + (pal ? 15 : 11));
        cpu.end_cycle(ppu.vblank && (ppu.ctrl & 0x80), apu.irq);
        ++cycle;
    }

    u8 access(u16 addr) {
        if (addr < 0x2000) return ram[addr & 0x7FF];
        if (addr >= 0x8000) return prg[addr & 0x7FFF];
        if (addr >= 0x6000) return wram[addr & 0x1FFF];
        if (addr < 0x4000) return ppu.read(addr);
        if (addr == 0x4015) return static_cast<u8>(apu.read() | (data & 0x20));
        if (addr == 0x4016 || addr == 0x4017) {
            const int port = addr & 1;
            if (strobe) shift[port] = buttons[port];
            const u8 r = static_cast<u8>(0x40 | (shift[port] & 1));
            if (!strobe) shift[port] = static_cast<u8>(shift[port] >> 1 | 0x80);
            return r;
        }
        return data;
    }
    u8 read(u16 addr) override {
        begin();
        const u8 v = access(addr);
        if (addr != 0x4015) data = v;
        end();
        return v;
    }
    void wait() {
        begin();
        end();
    }
    void write(u16 addr, u8 value) override {
        begin();
        data = value;
        if (addr < 0x2000)
            ram[addr & 0x7FF] = value;
        else if (addr < 0x4000)
            ppu.write(addr, value);
        else if (addr == 0x4014)
            dma_page = value;
        else if (addr == 0x4016) {
            strobe = value & 1;
            if (strobe) shift[0] = buttons[0], shift[1] = buttons[1];
        } else if (addr <= 0x4017)
            apu.write(addr, value, cycle);
        else if (addr >= 0x6000 && addr < 0x8000)
            wram[addr & 0x1FFF] = value;
        end();
    }
    bool strayed = false;  ///< the program ran into addresses where nothing answers

    void step() {
        strayed |= cpu.pc >= 0x4000 && cpu.pc < 0x6000;
        cpu.step();
        if (dma_page < 0) return;
        // The processor stands still before its next read, which comes too late for the poll of this
        // instruction.
        const u16 from = static_cast<u16>(dma_page << 8);
        dma_page = -1;
        wait();
        // Reads fall on the same half of the sound unit's clock as restarts of its sequence.
        if (!(cycle & 1)) wait();
        for (int i = 0; i < 256; ++i) {
            const u8 v = read(static_cast<u16>(from + i));
            begin();
            ppu.write(4, v);
            end();
        }
    }
};

}  // namespace reference
