#include "nes/snapshot.hpp"

#include <algorithm>

namespace wz {
namespace {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "snapshots are written as they lie in memory");

constexpr u32 kMagic = 0x535A5757;  // "WWZS"
constexpr u32 kVersion = 3, kMachineKind = 1;

u64 checksum(const u8* p, std::size_t n) {
    u64 h = 0xcbf29ce484222325ull;
    for (std::size_t i = 0; i < n; ++i) h = (h ^ p[i]) * 0x100000001b3ull;
    return h;
}

/// Every field of the console, in a fixed order. `M` is Machine or const Machine.
template <class M, class Visitor>
void visit(M& m, Visitor& v) {
    v(m.clock), v(m.frame_end), v(m.frame_begin), v(m.nmi_sample), v(m.scheduled_origin);
    v(m.pc), v(m.a), v(m.x), v(m.y), v(m.s), v(m.p), v(m.jammed), v(m.tail), v(m.tail_interrupt_disable),
        v(m.stolen), v(m.region);
    v(m.buttons), v(m.pad_shift), v(m.pad_strobe), v(m.pad_read), v(m.lagged), v(m.frame);
    auto& a = m.apu;
    v(a.sequence_start), v(a.now), v(a.reset_at), v(a.step), v(a.five_step), v(a.five_step_next),
        v(a.irq_inhibit);
    v(a.frame_irq), v(a.enabled), v(a.length), v(a.halt);
    v(a.clocked), v(a.clocked_at), v(a.irq_since), v(a.irq_until);
    v(a.dmc_irq_enabled), v(a.dmc_loop), v(a.dmc_irq), v(a.dmc_rate), v(a.dmc_address), v(a.dmc_length);
    v(a.dmc_buffer_full), v(a.dmc_bits), v(a.dmc_bytes_left), v(a.dmc_next_bit), v(a.dmc_fetch_at);
    auto& p = m.ppu;
    v(p.ctrl), v(p.mask), v(p.oam_addr), v(p.fine_x), v(p.write_toggle), v(p.read_buffer), v(p.vblank);
    v(p.vblank_lost), v(p.odd_frame), v(p.pipeline_live), v(p.v), v(p.t);
    v(p.shift_lo), v(p.shift_hi), v(p.shift_attr_lo), v(p.shift_attr_hi), v(p.bus), v(p.origin), v(p.done);
    v(p.sprite_zero_dot), v(p.overflow_dot), v(p.forecast_valid), v(p.bus_refreshed), v(p.palette), v(p.oam);
    v(m.ram);
}

std::size_t vram_size(const Cartridge& c) { return c.mirroring == Mirroring::FourScreen ? 0x1000 : 0x800; }

}  // namespace

void write_machine(Writer& w, const Machine& m, const Cartridge& c) {
    visit(m, w);
    w.bytes(m.ppu.vram, vram_size(c));
    if (c.chr_is_ram) w.bytes(m.ppu.chr_ram, sizeof m.ppu.chr_ram);
    const u8 used = std::any_of(std::begin(m.wram), std::end(m.wram), [](u8 b) { return b != 0; });
    w(used);
    if (used) w.bytes(m.wram, sizeof m.wram);
}

void read_machine(Reader& r, Machine& m, const Cartridge& c) {
    Machine loaded{};
    visit(loaded, r);
    r.bytes(loaded.ppu.vram, vram_size(c));
    if (c.chr_is_ram) r.bytes(loaded.ppu.chr_ram, sizeof loaded.ppu.chr_ram);
    u8 used;
    r(used);
    if (used > 1) throw SnapshotError("The snapshot is damaged.");
    loaded.wram_used = used;
    if (used) r.bytes(loaded.wram, sizeof loaded.wram);
    if (const std::string wrong = invalid_state(loaded); !wrong.empty())
        throw SnapshotError("The snapshot is damaged: " + wrong + ".");
    m = loaded;
}

std::vector<u8> seal(Writer& body, const Cartridge& c, u32 kind) {
    Writer w;
    w(kMagic), w(kVersion), w(kind), w(c.hash);
    const auto& b = body.data();
    w(static_cast<u64>(b.size()));
    w(checksum(b.data(), b.size()));
    w.bytes(b.data(), b.size());
    return w.take();
}

Reader open(const std::vector<u8>& blob, const Cartridge& c, u32 kind) {
    constexpr std::size_t header = 4 + 4 + 4 + 8 + 8 + 8;
    if (blob.size() < header) throw SnapshotError("The snapshot is cut short.");
    Reader r(blob.data(), blob.size());
    u32 magic, version, found;
    u64 hash, size, sum;
    r(magic), r(version), r(found), r(hash), r(size), r(sum);
    if (magic != kMagic) throw SnapshotError("These bytes are not a Warpzone snapshot.");
    if (version != kVersion)
        throw SnapshotError("The snapshot has format version " + std::to_string(version) +
                            ", this engine reads " + std::to_string(kVersion) + ".");
    if (found != kind)
        throw SnapshotError(
            "The snapshot is of another kind: one of a Machine and one of an environment "
            "can't stand for each other.");
    if (hash != c.hash) throw SnapshotError("The snapshot was taken with another ROM.");
    if (size != r.left() || checksum(blob.data() + header, r.left()) != sum)
        throw SnapshotError("The snapshot is damaged: its checksum does not fit.");
    return r;
}

std::vector<u8> save_machine(const Machine& m, const Cartridge& c) {
    Writer w;
    write_machine(w, m, c);
    return seal(w, c, kMachineKind);
}

void load_machine(const std::vector<u8>& blob, Machine& m, const Cartridge& c) {
    Reader r = open(blob, c, kMachineKind);
    Machine loaded;
    read_machine(r, loaded, c);
    if (r.left()) throw SnapshotError("The snapshot has bytes behind its end.");
    m = loaded;
}

}  // namespace wz
