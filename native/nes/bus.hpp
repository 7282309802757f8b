#pragma once
#include <algorithm>

#include "nes/machine.hpp"

namespace wz {

/// What an access needs to know beside the machine itself.
struct Console {
    Machine& m;
    const Cartridge& cart;
    const Timing& timing;
    Frame* out;
};

namespace bus {

/// Brings the PPU to `dots` and, when that enters a new frame, schedules the frame's end and NMI.
inline void sync_ppu(Console& k, i64 dots) {
    Machine& m = k.m;
    Ppu& p = m.ppu;
    if (p.done > ppu::vblank_dot(p) && dots <= ppu::clear_dot(p, k.timing)) {
        // In the blank nothing happens but that time passes.
        p.done = std::max(p.done, dots);
        return;
    }
    ppu::catch_up(p, k.cart, k.timing, k.out, dots);
    if (p.origin == m.scheduled_origin) return;
    m.scheduled_origin = m.ppu.origin;
    const i64 rise = k.timing.cycle_of_dot(ppu::vblank_dot(p));
    m.frame_end = rise + 1;
    m.frame_begin = kNever;
    if (p.ctrl & ppu::kNmiEnable) m.nmi_sample = rise;
    m.limit = 0;
}

/// The NMI line may have moved through an access in `cycle`; edges sampled before it are past recall.
inline void update_nmi(Machine& m, const Timing& t, i64 cycle, bool was_high) {
    const i64 before = m.nmi_sample;
    if (before < cycle) return;
    const Ppu& p = m.ppu;
    if (!(p.ctrl & ppu::kNmiEnable)) {
        m.nmi_sample = kNever;
    } else if (p.vblank) {
        // The flag may fall again before the line is sampled.
        if (!was_high) m.nmi_sample = t.dots_at_end(cycle) <= ppu::clear_dot(p, t) ? cycle : kNever;
    } else {
        const i64 rise = ppu::vblank_dot(p);
        m.nmi_sample = p.done <= rise && !p.vblank_lost ? t.cycle_of_dot(rise) : kNever;
    }
    if (m.nmi_sample != before) m.limit = 0;
}

/// The PPU's data pins keep what was last on them for about half a second, each bit by itself.
inline u8 decayed_bus(const Machine& m) {
    u8 v = 0;
    for (int i = 0; i < 8; ++i)
        if (m.frame - m.ppu.bus_refreshed[i] < 36) v = static_cast<u8>(v | (m.ppu.bus & (1 << i)));
    return v;
}
inline void drive_bus(Machine& m, u8 value, u8 bits = 0xFF) {
    m.ppu.bus = static_cast<u8>((m.ppu.bus & ~bits) | (value & bits));
    for (int i = 0; i < 8; ++i)
        if (bits >> i & 1) m.ppu.bus_refreshed[i] = m.frame;
}

/// Status bits as a read after `dots` dots would see them.
inline u8 status_bits(const Ppu& p, i64 dots) {
    return static_cast<u8>(p.vblank << 7 | (dots > p.sprite_zero_dot) << 6 | (dots > p.overflow_dot) << 5);
}
/// The count of dots up to which status reads need no catching up.
inline i64 status_horizon(const Ppu& p, const Timing& t) {
    const i64 rise = ppu::vblank_dot(p);
    if (p.done <= rise) return rise;
    const i64 clear = ppu::clear_dot(p, t);
    return p.done <= clear ? clear : p.origin + ppu::frame_dots(t) - 1;
}

inline u8 read_status(Console& k, i64 cycle) {
    Machine& m = k.m;
    Ppu& p = m.ppu;
    const i64 dots = k.timing.dots_at_access(cycle);
    if (dots > status_horizon(p, k.timing)) sync_ppu(k, dots);
    ppu::ensure_forecast(p, k.cart);
    const u8 v = status_bits(p, dots);
    drive_bus(m, v, 0xE0);
    p.write_toggle = 0;
    if (p.vblank) {
        p.vblank = 0;
        update_nmi(m, k.timing, cycle, true);
    } else if (dots == ppu::vblank_dot(p)) {
        p.vblank_lost = 1;
        update_nmi(m, k.timing, cycle, false);
    }
    return static_cast<u8>(v | (decayed_bus(m) & 0x1F));
}

inline u8* palette_entry(Ppu& p, u16 addr) {
    addr &= 0x1F;
    if ((addr & 0x13) == 0x10) addr &= 0x0F;
    return p.palette + addr;
}

/// Whether the PPU is busy with a visible line or the pre-render line.
inline bool fetching(const Ppu& p, const Timing& t) {
    const i64 at = p.done - p.origin;
    return ppu::rendering(p) &&
           (at < i64{Frame::kHeight} * kDotsPerLine || at >= i64{t.lines - 1} * kDotsPerLine);
}

/// While lines are drawn an access to $2007 bumps both counters of the address; else it adds 1 or 32.
inline void advance_address(Console& k) {
    Ppu& p = k.m.ppu;
    if (fetching(p, k.timing))
        p.v = ppu::next_row(ppu::next_column(p.v));
    else
        p.v = static_cast<u16>((p.v + ((p.ctrl & ppu::kIncrement32) ? 32 : 1)) & 0x7FFF);
}

inline u8 read_vram(Console& k) {
    Machine& m = k.m;
    Ppu& p = m.ppu;
    const u16 addr = p.v & 0x3FFF;
    u8 value;
    if (addr >= 0x3F00) {
        value = static_cast<u8>((*palette_entry(p, addr) & ((p.mask & 1) ? 0x30 : 0x3F)) |
                                (decayed_bus(m) & 0xC0));
        drive_bus(m, value, 0x3F);
        p.read_buffer = ppu::nametable_byte(p, k.cart, addr);
    } else {
        value = p.read_buffer;
        drive_bus(m, value);
        p.read_buffer =
            addr >= 0x2000 ? ppu::nametable_byte(p, k.cart, addr) : ppu::pattern_bytes(p, k.cart)[addr];
    }
    advance_address(k);
    return value;
}

inline void write_vram(Console& k, u8 value) {
    Ppu& p = k.m.ppu;
    const u16 addr = p.v & 0x3FFF;
    if (addr >= 0x3F00)
        *palette_entry(p, addr) = value & 0x3F;
    else if (addr >= 0x2000)
        p.vram[k.cart.nametable[(addr >> 10) & 3] + (addr & 0x3FF)] = value;
    else if (k.cart.chr_is_ram)
        p.chr_ram[addr] = value;
    advance_address(k);
}

inline u8 read_oam(const Machine& m) {
    const Ppu& p = m.ppu;
    const i64 at = p.done - p.origin;
    const int dot = static_cast<int>(at % kDotsPerLine);
    // The first 64 dots of a drawn line clear the secondary sprite memory, and reads see that.
    if (ppu::rendering(p) && at < i64{Frame::kHeight} * kDotsPerLine && dot >= 1 && dot <= 64) return 0xFF;
    return p.oam[p.oam_addr];
}

inline u8 read_ppu(Console& k, u16 addr, i64 cycle) {
    Machine& m = k.m;
    switch (addr & 7) {
        case 2:
            return read_status(k, cycle);
        case 4: {
            sync_ppu(k, k.timing.dots_at_access(cycle));
            const u8 v = read_oam(m);
            drive_bus(m, v);
            return v;
        }
        case 7:
            sync_ppu(k, k.timing.dots_at_access(cycle));
            ppu::drop_hit_forecast(m.ppu);
            ppu::keep_pipeline(m.ppu, k.cart, k.timing);
            return read_vram(k);
        default:
            return decayed_bus(m);
    }
}

inline void write_ppu(Console& k, u16 addr, u8 value, i64 cycle) {
    Machine& m = k.m;
    Ppu& p = m.ppu;
    drive_bus(m, value);
    const int reg = addr & 7;
    // The rendering switch acts one dot late.
    sync_ppu(k, k.timing.dots_at_access(cycle) + (reg == 1));
    if (reg == 1 || reg == 4 || (reg == 0 && ((p.ctrl ^ value) & ppu::kTallSprites)))
        ppu::drop_forecast(p);
    else if (reg == 0 || reg >= 5)
        ppu::drop_hit_forecast(p);
    if (reg >= 6 || (reg == 0 && ((p.ctrl ^ value) & ppu::kBackgroundTable)))
        ppu::keep_pipeline(p, k.cart, k.timing);
    switch (reg) {
        case 0: {
            const bool was_high = p.vblank && (p.ctrl & ppu::kNmiEnable);
            p.ctrl = value;
            p.t = static_cast<u16>((p.t & ~0x0C00) | (value & 3) << 10);
            update_nmi(m, k.timing, cycle, was_high);
            break;
        }
        case 1:
            p.mask = value;
            break;
        case 3:
            p.oam_addr = value;
            break;
        case 4:
            if (fetching(p, k.timing)) {
                // Sprite evaluation owns the memory: nothing is written, but the address moves to the next
                // sprite.
                p.oam_addr = static_cast<u8>(p.oam_addr + 4);
                break;
            }
            // The attribute byte has three bits that do not exist.
            p.oam[p.oam_addr] = (p.oam_addr & 3) == 2 ? value & 0xE3 : value;
            ++p.oam_addr;
            break;
        case 5:
            if (!p.write_toggle) {
                p.fine_x = value & 7;
                p.t = static_cast<u16>((p.t & ~0x001F) | value >> 3);
            } else {
                p.t = static_cast<u16>((p.t & ~0x73E0) | (value & 7) << 12 | (value & 0xF8) << 2);
            }
            p.write_toggle ^= 1;
            break;
        case 6:
            if (!p.write_toggle) {
                p.t = static_cast<u16>((p.t & 0x00FF) | (value & 0x3F) << 8);
            } else {
                p.t = static_cast<u16>((p.t & 0x7F00) | value);
                p.v = p.t;
            }
            p.write_toggle ^= 1;
            break;
        case 7:
            write_vram(k, value);
            break;
        default:
            break;
    }
}

/// Serial read of a controller: A, B, select, start, up, down, left, right, then ones.
inline u8 read_pad(Machine& m, int port) {
    m.pad_read = 1;
    if (m.pad_strobe) return static_cast<u8>(0x40 | (m.buttons[port] & 1));
    const u8 bit = m.pad_shift[port] & 1;
    m.pad_shift[port] = static_cast<u8>(m.pad_shift[port] >> 1 | 0x80);
    return 0x40 | bit;
}

/// Reads outside RAM and PRG ROM, in `cycle`.
inline u8 read_slow(Console& k, u16 addr, i64 cycle) {
    Machine& m = k.m;
    if (addr >= 0x6000) return m.wram[addr & 0x1FFF];
    if (addr < 0x4000) return read_ppu(k, addr, cycle);
    switch (addr) {
        case 0x4015: {
            m.limit = 0;
            // Bit 5 is not driven.
            return static_cast<u8>(apu::read_status(m.apu, m.region, cycle) | (addr >> 8 & 0x20));
        }
        case 0x4016:
            return read_pad(m, 0);
        case 0x4017:
            return read_pad(m, 1);
        default:
            return static_cast<u8>(addr >> 8);
    }
}

u8 read_any(Console& k, u16 addr, i64 cycle);

/// Copies a page to sprite memory; returns the cycles the CPU stands still. It does so before its next read,
/// so the instruction's poll for interrupts is past by then.
inline int sprite_dma(Console& k, u8 page, i64 cycle) {
    Machine& m = k.m;
    // Reads fall on the same half of the sound chip's clock as restarts of its frame counter.
    const int stall = (cycle & 1) ? 513 : 514;
    m.stolen = static_cast<u16>(stall);
    m.limit = 0;
    sync_ppu(k, k.timing.dots_at_access(cycle));
    ppu::drop_forecast(m.ppu);
    const u16 from = static_cast<u16>(page << 8);
    if (page < 0x20 && m.ppu.oam_addr == 0) {
        // The usual case: a page of RAM. The attribute byte has three bits that do not exist.
        const u8* source = m.ram + (from & 0x7FF);
        for (int i = 0; i < 256; i += 8) store64(m.ppu.oam + i, load64(source + i) & 0xFFE3FFFFFFE3FFFFull);
        drive_bus(m, source[255]);
        return stall;
    }
    for (int i = 0; i < 256; ++i) {
        const u8 to = static_cast<u8>(m.ppu.oam_addr + i);
        const u8 v = read_any(k, static_cast<u16>(from + i), cycle + 2 + i * 2);
        m.ppu.oam[to] = (to & 3) == 2 ? v & 0xE3 : v;
        drive_bus(m, v);
    }
    return stall;
}

/// Writes outside RAM, in `cycle`. Returns the cycles the CPU stands still afterwards.
inline int write_slow(Console& k, u16 addr, u8 value, i64 cycle) {
    Machine& m = k.m;
    if (addr >= 0x8000) return 0;
    if (addr >= 0x6000) {
        m.wram[addr & 0x1FFF] = value;
        m.wram_used = 1;
        return 0;
    }
    if (addr < 0x4000) {
        write_ppu(k, addr, value, cycle);
        return 0;
    }
    if (addr == 0x4014) return sprite_dma(k, value, cycle);
    if (addr == 0x4016) {
        m.pad_strobe = value & 1;
        if (m.pad_strobe) m.pad_shift[0] = m.buttons[0], m.pad_shift[1] = m.buttons[1];
    } else if (addr <= 0x4017) {
        apu::write(m.apu, m.region, addr, value, cycle);
        // Only these registers move an interrupt or a memory fetch.
        if (addr == 0x4010 || addr >= 0x4015) m.limit = 0;
    }
    return 0;
}

inline u8 read_any(Console& k, u16 addr, i64 cycle) {
    if (addr < 0x2000) return k.m.ram[addr & 0x7FF];
    if (addr >= 0x8000) return k.cart.prg[addr & 0x7FFF];
    return read_slow(k, addr, cycle);
}

}  // namespace bus
}  // namespace wz
