#include "compat/console.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <string>

#include "nes/jit.hpp"

namespace wz::compat {

std::shared_ptr<const Game> Game::of(std::span<const u8> image) {
    static std::mutex lock;
    static std::map<std::string, std::weak_ptr<const Game>> in_use;
    const std::string key(reinterpret_cast<const char*>(image.data()), image.size());
    std::lock_guard hold(lock);
    if (auto found = in_use[key].lock()) return found;
    std::erase_if(in_use, [](const auto& entry) { return entry.second.expired(); });
    auto cartridge = Cartridge::parse(image);
    if (cartridge->chr_is_ram)
        throw RomError(
            "This cartridge has character RAM: warpzone.compat plays mapper-0 cartridges with character ROM "
            "only.");
    constexpr jit::Rules as_nes_py{.branch_crossing = 2, .modify_crossing = true};
    auto game = std::make_shared<Game>(Game{cartridge, jit::translate(*cartridge, as_nes_py), {}});
    for (std::size_t i = 0; i < game->flat.size(); ++i) {
        const u8* const tile = cartridge->tiles.data() + i * 64;
        const bool one = std::memcmp(tile, tile + 1, 63) == 0;
        for (u8 k = 0; k < 4; ++k)  // pixel 0 has the colour of slot 0 in every palette
            game->flat[i][k] = !one ? 0xFF : tile[0] ? static_cast<u8>(4 * k | tile[0]) : 0;
    }
    in_use[key] = game;
    return game;
}

u8 read_register(Console& k, u16 addr, i64 cycle) {
    if (addr < 0x4000) return ppu::read(k, addr, 3 * (cycle + 1));
    if (addr == 0x4016 || addr == 0x4017) {
        Pad& pad = k.pads[addr & 1];
        const u8 bit = (pad.strobe ? pad.buttons : pad.bits) & 1;
        if (!pad.strobe) pad.bits >>= 1;
        return bit | 0x40;
    }
    return addr >= 0x6000 && k.has_wram ? k.state.shell.wram[addr & 0x1FFF] : 0;
}

int write_register(Console& k, u16 addr, u8 value, i64 cycle) {
    if (addr >= 0x8000) return 0;
    if (addr < 0x4000) {
        ppu::write(k, addr, value, 3 * (cycle + 1));
    } else if (addr == 0x4014) {
        ppu::sync(k, 3 * (cycle + 1));
        if (value < 0x20)
            ppu::dma(k.state.ppu, k.state.shell.ram + (value << 8 & 0x7FF));
        else if (k.has_wram && value >= 0x60 && value < 0x80)
            ppu::dma(k.state.ppu, k.state.shell.wram + (value << 8 & 0x1FFF));
        return 513 + ((cycle + 1) & 1);
    } else if (addr == 0x4016) {
        for (Pad& pad : k.pads) {
            pad.strobe = value & 1;
            if (!pad.strobe) pad.bits = pad.buttons;
        }
    } else if (addr >= 0x6000 && k.has_wram) {
        k.state.shell.wram[addr & 0x1FFF] = value;
    }
    return 0;
}

i64 skip_polls(Console& k, i64 clock, i64 turn, i64 limit) {
    const Ppu& p = k.state.ppu;
    if (p.vblank || !p.first_write || k.state.status != p.hit << 6) return 0;
    // A turn that begins in cycle c reads after dot 3c + 2.
    const i64 by_status = (ppu::status_changes(k) / 3 - clock + turn - 1) / turn,
              by_limit = (limit - clock) / turn;
    const i64 skipped = std::max<i64>(std::min(by_status, by_limit), 0) * turn;
    k.skipped += skipped;
    return skipped;
}

void reset(Console& k) {
    State& m = k.state;
    Ppu& p = m.ppu;
    m.clock = m.end = 0;
    m.a = m.x = m.y = 0;
    m.p = 0x34;
    m.s = 0xFD;
    m.pc = static_cast<u16>(k.cartridge->prg[0x7FFC] | k.cartridge->prg[0x7FFD] << 8);
    p.tall = p.nmi = p.vblank = 0;
    p.show_background = p.show_sprites = p.first_write = 1;
    p.background_table = p.sprite_table = 0;
    p.v = p.t = 0;
    p.oam_addr = p.fine_x = 0;
    p.increment = 1;
    p.listed = 0;
    // The first dot is one before the pre-render line of an even frame: the last dot of the line before it.
    p.done = 0;
    p.origin = -261 * i64{kDots};
    p.even = 0;
}

void step(Console& k) {
    State& m = k.state;
    Ppu& p = m.ppu;
    m.end += kCyclesPerStep;
    for (;;) {
        // What happens on its own: the vertical blank, and the end of the frame, which may drop a dot.
        const i64 rises = p.origin + 241 * i64{kDots} + 1;
        const bool before = p.done <= rises;
        const i64 last = p.origin + 261 * i64{kDots} + kDots - 1;
        const i64 dot = before ? rises : std::max(last, p.done);
        const i64 limit = std::min(m.end, dot / 3);
        if (m.clock < limit) {
            if (k.skip_idle_loops && k.translate && k.game->translation)
                cpu::execute_translated(k, limit);
            else if (k.skip_idle_loops)
                cpu::execute<true>(k, limit);
            else
                cpu::execute<false>(k, limit);
        }
        if (dot / 3 >= m.end) break;
        ppu::sync(k, dot + 1);
        // Only here: enabling it inside the vertical blank comes too late.
        if (before && p.nmi) cpu::interrupt(k);
    }
    ppu::sync(k, 3 * m.end);
}

}  // namespace wz::compat
