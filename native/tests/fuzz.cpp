// Hammers what takes bytes from outside: the ROM loader, the snapshot loader (with and without a fitting
// checksum) and the controllers. Nothing may crash, hang or read out of bounds; run it under the sanitizers.
// Takes WARPZONE_FUZZ_SECONDS seconds (1 unless told) and WARPZONE_FUZZ_SEED.
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>

#include "nes/snapshot.hpp"
#include "pool/pool.hpp"
#include "tests/reseal.hpp"

namespace {

using namespace wz;
using test::reseal;
using Dice = std::mt19937_64;

std::vector<u8> plain_image(Dice& random) {
    std::vector<u8> image = {'N', 'E', 'S', 0x1A, 2, 1, static_cast<u8>(random() & 9), 0, 0, 0,
                             0,   0,   0,   0,    0, 0};
    const std::size_t chr = random() % 3 ? 0x2000 : 0;
    image[5] = chr ? 1 : 0;
    const std::size_t program = 0x8000 + chr;
    for (std::size_t i = 0; i < program; ++i) image.push_back(static_cast<u8>(random() >> 8));
    return image;
}

void damage(std::vector<u8>& bytes, Dice& random) {
    for (unsigned n = static_cast<unsigned>(random() % 8); n > 0 && !bytes.empty(); --n) {
        const std::size_t at =
            (random() & 1) ? random() % bytes.size() : random() % std::min<std::size_t>(bytes.size(), 64);
        switch (random() % 4) {
            case 0:
                bytes[at] = static_cast<u8>(random());
                break;
            case 1:
                bytes[at] ^= static_cast<u8>(1u << (random() % 8));
                break;
            case 2:
                bytes.resize(at);
                break;
            default:
                bytes[at] = (random() & 1) ? 0xFF : 0x00;
                break;
        }
    }
}

struct Counts {
    long roms = 0, roms_run = 0, snapshots = 0, snapshots_run = 0, steps = 0;
};

void run_some(Machine& m, const Cartridge& cart, Dice& random, Frame& frame, int frames) {
    for (int i = 0; i < frames; ++i) {
        RunOptions options;
        options.skip_idle_loops = random() & 1;
        options.translate = random() & 1;
        run_frame(m, cart, static_cast<u8>(random()), static_cast<u8>(random()),
                  (random() & 1) ? &frame : nullptr, options);
    }
}

void fuzz_roms(Dice& random, Frame& frame, Counts& counts) {
    std::vector<u8> image = plain_image(random);
    if (random() & 1) damage(image, random);
    ++counts.roms;
    try {
        const auto cart = Cartridge::parse(image);
        auto m = std::make_unique<Machine>();
        power_on(*m, *cart, (random() & 1) ? Region::Pal : Region::Ntsc);
        run_some(*m, *cart, random, frame, 3);
        if (random() & 1) press_reset(*m, *cart);
        run_some(*m, *cart, random, frame, 2);
        const std::vector<u8> saved = save_machine(*m, *cart);
        auto again = std::make_unique<Machine>();
        load_machine(saved, *again, *cart);
        if (save_machine(*again, *cart) != saved) {
            std::printf("a state changed by saving and loading it\n");
            std::exit(1);
        }
        ++counts.roms_run;
    } catch (const RomError&) {
    }
}

void fuzz_snapshots(const Cartridge& cart, const std::vector<u8>& good, Dice& random, Frame& frame,
                    Counts& counts) {
    std::vector<u8> blob = good;
    damage(blob, random);
    if (random() % 4) reseal(blob);
    ++counts.snapshots;
    try {
        auto m = std::make_unique<Machine>();
        load_machine(blob, *m, cart);
        run_some(*m, cart, random, frame, 2);
        ++counts.snapshots_run;
    } catch (const SnapshotError&) {
    }
}

/// What a snapshot of this state leads to must come to an end.
void try_state(const std::vector<u8>& blob, const Cartridge& cart, Dice& random, Frame& frame,
               Counts& counts) {
    ++counts.snapshots;
    alarm(60);  // a state that never ends a frame kills the program
    try {
        static Machine m;
        load_machine(blob, m, cart);
        run_some(m, cart, random, frame, 3);
        // The sound unit must catch up in time too, however far behind it is.
        apu::read_status(m.apu, m.region, m.clock);
        ++counts.snapshots_run;
    } catch (const SnapshotError&) {
    }
    alarm(0);
}

/// The same state after a billion minutes.
Machine much_later(Machine m) {
    constexpr i64 kCycles = i64{1} << 47;
    const i64 dots = timing(m.region).dots_at_access(kCycles) - timing(m.region).dots_at_access(0);
    auto later = [](i64& v, i64 by) { v += v == kNever ? 0 : by; };
    for (i64* v :
         {&m.ppu.origin, &m.ppu.done, &m.scheduled_origin, &m.ppu.sprite_zero_dot, &m.ppu.overflow_dot})
        later(*v, dots);
    Apu& a = m.apu;
    for (i64* v : {&m.clock, &m.frame_end, &m.frame_begin, &m.nmi_sample, &a.sequence_start, &a.now,
                   &a.reset_at, &a.dmc_next_bit, &a.dmc_fetch_at, &a.clocked_at, &a.irq_since, &a.irq_until})
        later(*v, kCycles);
    return m;
}

Machine with_a_sample(Machine m) {
    for (const auto& [to, value] : {std::pair<u16, u8>{0x4010, 0x0F}, {0x4013, 0xFF}, {0x4015, 0x10}})
        apu::write(m.apu, m.region, to, value, m.clock - 1);
    return m;
}

/// Each field of the state on its own, at every edge: times as numbers, everything else byte by byte.
void fuzz_fields(const Cartridge& cart, const Machine& good, Dice& random, Frame& frame, Counts& counts) {
    static Machine m;
    for (const Machine& from :
         {good, with_a_sample(good), much_later(good), much_later(with_a_sample(good))}) {
        std::vector<u8> blob = save_machine(from, cart);
        load_machine(blob, m, cart);  // these are possible
        Apu& a = m.apu;
        for (i64* field :
             {&m.clock, &m.frame_end, &m.frame_begin, &m.nmi_sample, &m.scheduled_origin, &m.ppu.origin,
              &m.ppu.done, &m.ppu.sprite_zero_dot, &m.ppu.overflow_dot, &a.sequence_start, &a.now,
              &a.reset_at, &a.dmc_next_bit, &a.dmc_fetch_at, &a.clocked_at, &a.irq_since, &a.irq_until})
            for (const i64 value : {i64{0},
                                    i64{1},
                                    i64{-1},
                                    i64{-341},
                                    i64{-342},
                                    i64{1} << 30,
                                    i64{1} << 47,
                                    i64{1} << 48,
                                    (i64{1} << 50) - 1,
                                    i64{1} << 50,
                                    kNever - 1,
                                    kNever,
                                    kNever + 1,
                                    INT64_MAX,
                                    INT64_MIN,
                                    from.clock,
                                    from.clock - 10'000,
                                    from.clock + 10'000,
                                    from.clock + (1 << 20),
                                    from.clock - (1 << 20),
                                    from.ppu.done,
                                    from.ppu.origin}) {
                m = from;
                *field = value;
                try_state(save_machine(m, cart), cart, random, frame, counts);
            }
        const std::size_t fields = std::min<std::size_t>(blob.size(), test::kSnapshotHeader + 300);
        for (std::size_t at = test::kSnapshotHeader; at < fields; ++at)
            for (const u8 value : {0x00, 0x01, 0x02, 0x07, 0x08, 0x10, 0x7F, 0x80, 0xFF}) {
                std::vector<u8> changed = blob;
                changed[at] = value;
                reseal(changed);
                try_state(changed, cart, random, frame, counts);
            }
    }
}

void fuzz_pool(Pool& pool, std::vector<u8>& good, Dice& random, const Results& to, Counts& counts) {
    i64 actions[2];
    for (int i = 0; i < 20; ++i) {
        for (i64& a : actions) a = static_cast<i64>(random() % 12);
        pool.step(actions, to);
        ++counts.steps;
    }
    if (random() & 1) good = pool.snapshot(static_cast<int>(random() & 1), 1);
    std::vector<u8> blob = good;
    damage(blob, random);
    if (random() % 4) reseal(blob);
    ++counts.snapshots;
    try {
        pool.restore(0, blob);
        ++counts.snapshots_run;
        for (i64& a : actions) a = 3;
        pool.step(actions, to);
    } catch (const SnapshotError&) {
    } catch (const PoolError&) {  // the damaged game crashed: reported, and the environment can be reset
        pool.reset(nullptr, nullptr, nullptr, to);
    }
}

}  // namespace

int main() {
    const char* seconds_text = std::getenv("WARPZONE_FUZZ_SECONDS");
    const char* seed_text = std::getenv("WARPZONE_FUZZ_SEED");
    const double seconds = seconds_text ? std::atof(seconds_text) : 1.0;
    Dice random(seed_text ? static_cast<u64>(std::atoll(seed_text)) : 1);
    Counts counts;
    auto frame = std::make_unique<Frame>();
    *frame = Frame{};

    std::shared_ptr<const Cartridge> game;
    std::unique_ptr<Pool> pool;
    std::vector<u8> observations, ends;
    std::vector<i32> telemetry, final_telemetry;
    u8 terminated[2], truncated[2];
    Results to{};
    std::vector<u8> machine_state, slot_state;
    const char* path = std::getenv("WARPZONE_ROM");
    if (path) {
        std::ifstream file(path, std::ios::binary);
        const std::vector<u8> rom{std::istreambuf_iterator<char>(file), {}};
        game = Cartridge::parse(rom);
        PoolConfig config;
        config.environments = config.threads = 2;
        config.stages = {{1, 1}, {8, 4}};
        for (int i = 0; i < 12; ++i) config.slot.actions.push_back(static_cast<u8>(random()));
        pool = std::make_unique<Pool>(game, config);
        observations.resize(2 * pool->observation_size());
        ends.resize(observations.size());
        telemetry.resize(2 * smb::kFieldCount);
        final_telemetry.resize(telemetry.size());
        to = {observations.data(), telemetry.data(), terminated,
              truncated,           ends.data(),      final_telemetry.data()};
        pool->reset(nullptr, nullptr, nullptr, to);
        slot_state = pool->snapshot(0, 4);
        auto m = std::make_unique<Machine>();
        power_on(*m, *game, Region::Ntsc);
        run_some(*m, *game, random, *frame, 200);
        machine_state = save_machine(*m, *game);
        fuzz_fields(*game, *m, random, *frame, counts);
    }

    const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    while (std::chrono::steady_clock::now() < end) {
        fuzz_roms(random, *frame, counts);
        if (!game) continue;
        for (int i = 0; i < 10; ++i) fuzz_snapshots(*game, machine_state, random, *frame, counts);
        fuzz_pool(*pool, slot_state, random, to, counts);
    }
    std::printf("%ld ROMs (%ld ran), %ld snapshots (%ld ran), %ld steps of play%s\n", counts.roms,
                counts.roms_run, counts.snapshots, counts.snapshots_run, counts.steps,
                game ? "" : "; WARPZONE_ROM is not set: the game was not fuzzed");
    return counts.roms_run > 0 ? 0 : 1;
}
