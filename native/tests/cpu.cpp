// Every one of the 256 opcodes, from random states, in ROM and in RAM, against the reference processor: the
// same registers, flags, memory and cycles.
#include "nes/cpu.hpp"

#include <cstdio>
#include <memory>
#include <random>

#include "reference.hpp"

namespace {

using namespace wz;

constexpr int kStatesPerOpcode = 6000;

/// Plain memory; remembers whether the registers were touched, which is another test's business.
struct Memory : reference::Bus {
    std::array<u8, 0x800> ram{};
    std::array<u8, 0x2000> wram{};
    const u8* prg = nullptr;
    int cycles = 0;
    bool touched_registers = false;

    u8 read(u16 addr) override {
        ++cycles;
        if (addr < 0x2000) return ram[addr & 0x7FF];
        if (addr >= 0x8000) return prg[addr & 0x7FFF];
        if (addr >= 0x6000) return wram[addr & 0x1FFF];
        touched_registers = true;
        return 0;
    }
    void write(u16 addr, u8 value) override {
        ++cycles;
        if (addr < 0x2000)
            ram[addr & 0x7FF] = value;
        else if (addr >= 0x6000 && addr < 0x8000)
            wram[addr & 0x1FFF] = value;
        else if (addr < 0x6000)
            touched_registers = true;
    }
};

}  // namespace

int main() {
    std::mt19937 random(20240607);
    auto byte = [&] { return static_cast<u8>(random() >> 13); };
    auto cart = std::make_unique<Cartridge>();
    for (u8& b : cart->prg) b = byte();
    auto m = std::make_unique<Machine>();
    Frame* const none = nullptr;
    long compared = 0;
    for (int opcode = 0; opcode < 256; ++opcode) {
        int seen = 0;
        for (int i = 0; seen < kStatesPerOpcode; ++i) {
            if (i > 40 * kStatesPerOpcode) {
                std::printf("opcode %02X: too few states without register accesses\n", opcode);
                return 1;
            }
            for (int k = 0; k < 24; ++k) m->ram[random() & 0x7FF] = byte();
            for (int k = 0; k < 4; ++k) m->wram[random() & 0x1FFF] = byte();
            // Where the instruction is: mostly ROM, also RAM, and across the ends of pages and memories.
            static constexpr u16 kPlaces[] = {0x8000, 0x8000, 0x8000, 0x0200, 0x0000, 0x6000, 0xFFF0, 0x80F0};
            const u16 place = kPlaces[random() & 7];
            const u16 span = place == 0x8000 ? 0x7FF0 : place == 0xFFF0 || place == 0x80F0 ? 0x10 : 0x500;
            const u16 pc = static_cast<u16>(place + random() % span);
            static constexpr u8 kHighs[] = {0x00, 0x01, 0x07, 0x10, 0x60, 0x7E, 0x80, 0x9F, 0xFE, 0xFF};
            const u8 operand[3] = {static_cast<u8>(opcode),
                                   (random() & 3) ? byte() : static_cast<u8>(random() & 1 ? 0xFF : 0),
                                   (random() & 3) ? kHighs[random() % 10] : byte()};
            for (int k = 0; k < 3; ++k) {
                const u16 at = static_cast<u16>(pc + k);
                if (at < 0x2000)
                    m->ram[at & 0x7FF] = operand[k];
                else if (at >= 0x8000)
                    cart->prg[at & 0x7FFF] = operand[k];
                else
                    m->wram[at & 0x1FFF] = operand[k];
            }
            // Pointers in the zero page should lead somewhere harmless most of the time.
            if (random() & 1)
                for (int k = 1; k < 256; k += 2) m->ram[k] = kHighs[(k * 7 + i) % 10];

            Memory memory;
            memory.prg = cart->prg.data();
            reference::Cpu cpu(memory);
            cpu.pc = pc;
            cpu.a = byte(), cpu.x = byte(), cpu.y = byte(), cpu.s = byte();
            cpu.p = static_cast<u8>((byte() & ~reference::B) | reference::U);
            m->a = cpu.a, m->x = cpu.x, m->y = cpu.y, m->s = cpu.s, m->p = cpu.p, m->pc = pc;
            m->jammed = 0;
            m->clock = 1000 + (random() & 1);
            m->limit = m->clock + 1;
            m->nmi_sample = kNever;
            m->tail = Tail::Normal;
            std::memcpy(memory.ram.data(), m->ram, sizeof m->ram);
            std::memcpy(memory.wram.data(), m->wram, sizeof m->wram);
            const i64 before = m->clock;
            cpu.step();
            if (memory.touched_registers) continue;
            ++seen;

            Console k{*m, *cart, kNtsc, none};
            if (random() & 1)
                cpu::execute<true>(k);
            else
                cpu::execute<false>(k);
            if (cpu.jammed) {
                if (!m->jammed || m->pc != cpu.pc) {
                    std::printf("opcode %02X should stop the processor\n", opcode);
                    return 1;
                }
                continue;
            }
            ++compared;
            const bool same = m->a == cpu.a && m->x == cpu.x && m->y == cpu.y && m->s == cpu.s &&
                              m->pc == cpu.pc && ((m->p ^ cpu.p) & ~(reference::B | reference::U)) == 0 &&
                              m->clock - before == memory.cycles && !m->jammed &&
                              std::memcmp(m->ram, memory.ram.data(), sizeof m->ram) == 0 &&
                              std::memcmp(m->wram, memory.wram.data(), sizeof m->wram) == 0;
            if (!same) {
                std::printf(
                    "opcode %02X (%.3s) at %04X, operand %02X %02X: a %02X/%02X x %02X/%02X y %02X/%02X "
                    "s %02X/%02X p %02X/%02X pc %04X/%04X cycles %d/%d (engine/reference)%s\n",
                    opcode, reference::kNames + 3 * opcode, pc, operand[1], operand[2], m->a, cpu.a, m->x,
                    cpu.x, m->y, cpu.y, m->s, cpu.s, m->p, cpu.p, m->pc, cpu.pc,
                    static_cast<int>(m->clock - before), memory.cycles,
                    std::memcmp(m->ram, memory.ram.data(), sizeof m->ram) ? ", RAM differs" : "");
                return 1;
            }
        }
    }
    std::printf("%ld instructions the same\n", compared);
    return 0;
}
