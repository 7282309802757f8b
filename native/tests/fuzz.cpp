// Hammers what takes bytes from outside: the ROM loader, the snapshot loader (with and without a fitting
// checksum) and the controllers. Nothing may crash, hang or read out of bounds; run it under the sanitizers.
// Takes WARPZONE_FUZZ_SECONDS seconds (1 unless told) and WARPZONE_FUZZ_SEED.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>

#include "nes/snapshot.hpp"
#include "pool/pool.hpp"

namespace {

using namespace wz;
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

/// A damaged body under a checksum that fits, so that the loader must judge the values themselves.
void reseal(std::vector<u8>& blob) {
    constexpr std::size_t kHeader = 36;
    if (blob.size() < kHeader) return;
    u64 sum = 0xcbf29ce484222325ull;
    for (std::size_t i = kHeader; i < blob.size(); ++i) sum = (sum ^ blob[i]) * 0x100000001b3ull;
    const u64 size = blob.size() - kHeader;
    std::memcpy(blob.data() + 20, &size, 8);
    std::memcpy(blob.data() + 28, &sum, 8);
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

void fuzz_pool(Pool& pool, std::vector<u8>& good, Dice& random, const Results& to, Counts& counts) {
    i64 actions[2];
    for (int i = 0; i < 20; ++i) {
        for (i64& a : actions) a = static_cast<i64>(random() % 12);
        pool.step(actions, to);
        ++counts.steps;
    }
    if (random() & 1) good = pool.slot(static_cast<int>(random() & 1)).save(1);
    std::vector<u8> blob = good;
    damage(blob, random);
    if (random() % 4) reseal(blob);
    ++counts.snapshots;
    try {
        pool.slot(0).load(blob);
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
        slot_state = pool->slot(0).save(4);
        auto m = std::make_unique<Machine>();
        power_on(*m, *game, Region::Ntsc);
        run_some(*m, *game, random, *frame, 200);
        machine_state = save_machine(*m, *game);
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
