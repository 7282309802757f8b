// Prints hashes of memory, pictures, observations and snapshots over scripted play. The same lines must come
// out on every platform and for every number of threads. Needs WARPZONE_ROM; without it a small program is
// run.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>

#include "nes/snapshot.hpp"
#include "pool/pool.hpp"

namespace {

using namespace wz;

struct Hash {
    u64 value = 0xcbf29ce484222325ull;
    void add(const void* data, std::size_t size) {
        const u8* p = static_cast<const u8*>(data);
        for (std::size_t i = 0; i < size; ++i) value = (value ^ p[i]) * 0x100000001b3ull;
    }
};

/// A stream of numbers that is the same everywhere.
struct Script {
    u64 state = 12345;
    unsigned below(unsigned n) {
        state = state * 6364136223846793005ull + 1442695040888963407ull;
        return static_cast<unsigned>(state >> 33) % n;
    }
};

void add_picture(Hash& h, const Frame& f) {
    for (int y = 0; y < Frame::kHeight; ++y) h.add(f.line(y), Frame::kWidth);
    h.add(f.emphasis, sizeof f.emphasis);
}

void play_machine(const Cartridge& cart, Region region, const char* name) {
    auto m = std::make_unique<Machine>();
    auto frame = std::make_unique<Frame>();
    *frame = Frame{};
    power_on(*m, cart, region);
    Hash memory, pictures, states;
    Script script;
    u8 held = 0;
    for (int i = 0; i < 2000; ++i) {
        if (i % 12 == 0) held = static_cast<u8>(i < 120 ? (i / 12 % 2) * kStart : kRight | script.below(4));
        const bool drawn = i % 3 == 0;
        run_frame(*m, cart, held, 0, drawn ? frame.get() : nullptr);
        memory.add(m->ram, sizeof m->ram);
        memory.add(&m->clock, sizeof m->clock);
        if (drawn) add_picture(pictures, *frame);
        if (i % 100 == 0) {
            const std::vector<u8> blob = save_machine(*m, cart);
            states.add(blob.data(), blob.size());
        }
    }
    std::printf("%s memory %016llx pictures %016llx snapshots %016llx\n", name,
                static_cast<unsigned long long>(memory.value),
                static_cast<unsigned long long>(pictures.value),
                static_cast<unsigned long long>(states.value));
}

void play_pool(std::shared_ptr<const Cartridge> cart, int threads, bool max_pool, int height, int width,
               int top, std::vector<Channel> channels) {
    constexpr int kEnvironments = 6;
    PoolConfig config;
    config.environments = kEnvironments;
    config.threads = threads;
    config.height = height;
    config.width = width;
    config.top = top;
    config.pin = false;
    config.stages = {{1, 1}, {1, 2}, {4, 4}};
    config.slot.actions = {0, 0x80, 0x81, 0x82, 0x83, 0x01, 0x40};
    config.slot.sticky = 0.1;
    config.slot.noop_max = 10;
    config.slot.max_pool = max_pool;
    config.slot.channels = std::move(channels);
    Pool pool(std::move(cart), config);
    std::vector<u8> observations(kEnvironments * pool.observation_size()), ends(observations.size());
    std::vector<i32> telemetry(kEnvironments * smb::kFieldCount), final_telemetry(telemetry.size());
    u8 terminated[kEnvironments] = {}, truncated[kEnvironments] = {};
    const Results to{observations.data(), telemetry.data(), terminated,
                     truncated,           ends.data(),      final_telemetry.data()};
    u64 seeds[kEnvironments];
    for (int i = 0; i < kEnvironments; ++i) seeds[i] = static_cast<u64>(i) * 77 + 1;
    Script script;
    Hash seen, told, states;
    pool.reset(nullptr, seeds, nullptr, to);
    for (int step = 0; step < 250; ++step) {
        i64 actions[kEnvironments];
        for (i64& a : actions) a = script.below(7);
        pool.step(actions, to);
        seen.add(observations.data(), observations.size());
        told.add(telemetry.data(), telemetry.size() * sizeof(i32));
        told.add(terminated, sizeof terminated);
    }
    for (int i = 0; i < kEnvironments; ++i) {
        const std::vector<u8> blob = pool.snapshot(i, 4);
        states.add(blob.data(), blob.size());
    }
    std::printf("pool %dx%d%s observations %016llx telemetry %016llx snapshots %016llx\n", height, width,
                max_pool ? " max" : "", static_cast<unsigned long long>(seen.value),
                static_cast<unsigned long long>(told.value), static_cast<unsigned long long>(states.value));
}

std::vector<u8> small_program() {
    std::vector<u8> image(16 + 0x8000 + 0x2000);
    const u8 header[] = {'N', 'E', 'S', 0x1A, 2, 1, 1};
    std::memcpy(image.data(), header, sizeof header);
    // Turns everything on, then counts and scrolls in its interrupt handler.
    const u8 code[] = {0xA9, 0x90, 0x8D, 0x00, 0x20, 0xA9, 0x1E, 0x8D, 0x01, 0x20, 0x4C, 0x0A, 0x80};
    const u8 nmi[] = {0xE6, 0x10, 0xA5, 0x10, 0x8D, 0x05, 0x20, 0x8D, 0x05, 0x20, 0x40};
    std::memcpy(image.data() + 16, code, sizeof code);
    std::memcpy(image.data() + 16 + 0x100, nmi, sizeof nmi);
    const u8 vectors[] = {0x00, 0x81, 0x00, 0x80, 0x00, 0x80};
    std::memcpy(image.data() + 16 + 0x7FFA, vectors, sizeof vectors);
    for (std::size_t i = 0; i < 0x2000; ++i) image[16 + 0x8000 + i] = static_cast<u8>(i * 37 >> 3);
    return image;
}

}  // namespace

int main(int argc, char** argv) {
    const int threads = argc > 1 ? std::atoi(argv[1]) : 2;
    const char* path = std::getenv("WARPZONE_ROM");
    std::vector<u8> rom = small_program();
    if (path) {
        std::ifstream file(path, std::ios::binary);
        rom = {std::istreambuf_iterator<char>(file), {}};
    }
    const auto cart = Cartridge::parse(rom);
    play_machine(*cart, Region::Ntsc, "ntsc");
    play_machine(*cart, Region::Pal, "pal");
    if (!path) return 0;
    play_pool(cart, threads, false, 84, 84, 0, {Channel::Gray});
    play_pool(cart, threads, true, 84, 84, 32, {Channel::Red});
    play_pool(cart, threads, false, 61, 97, 0, {Channel::Red, Channel::Green, Channel::Blue});
    return 0;
}
