#include "compat/console.hpp"

#include <algorithm>

namespace wz::compat {

void check_cartridge(const Cartridge& c) {
    if (c.chr_is_ram)
        throw RomError(
            "This cartridge has character RAM: warpzone.compat plays mapper-0 cartridges with character ROM "
            "only.");
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
            if (k.skip_idle_loops)
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
