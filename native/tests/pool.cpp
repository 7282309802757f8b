// The pool used from several threads at once, for ThreadSanitizer; and the arguments it refuses. Needs
// WARPZONE_ROM.
#include "pool/pool.hpp"

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <thread>

#include "nes/snapshot.hpp"
#include "tests/expect.hpp"
#include "tests/reseal.hpp"

namespace {

using namespace wz;

constexpr int kEnvironments = 6;

struct Buffers {
    std::vector<u8> observations, ends;
    std::vector<i32> telemetry, final_telemetry;
    u8 terminated[kEnvironments] = {}, truncated[kEnvironments] = {};
    explicit Buffers(const Pool& pool)
        : observations(kEnvironments * pool.observation_size()),
          ends(observations.size()),
          telemetry(kEnvironments * smb::kFieldCount),
          final_telemetry(telemetry.size()) {}
    Results results() {
        return {observations.data(), telemetry.data(), terminated,
                truncated,           ends.data(),      final_telemetry.data()};
    }
};

PoolConfig some_config() {
    PoolConfig config;
    config.environments = kEnvironments;
    config.threads = 3;
    config.stages = {{1, 1}};
    config.slot.actions = {0, 0x80, 0x81};
    return config;
}

/// Returns whether it was refused.
template <class Call>
bool refused(Call call) {
    try {
        call();
    } catch (const PoolError&) {
        return true;
    }
    return false;
}

/// One thread plays while another changes what is played: every call is done whole or refused.
void two_threads(std::shared_ptr<const Cartridge> game) {
    Pool pool(std::move(game), some_config());
    Buffers buffers(pool), changed(pool);
    pool.reset(nullptr, nullptr, nullptr, buffers.results());
    const std::vector<u8> start = pool.snapshot(0, 1);
    std::atomic<bool> stop = false;
    std::atomic<int> done = 0;
    std::thread other([&] {
        std::vector<u8> ram(kEnvironments * 0x800);
        for (int round = 0; !stop; ++round) {
            const int stages = 1 + done;
            done += !refused([&] { pool.add_stage({1 + stages / 4 % 8, 1 + stages % 4}); });
            refused([&] { pool.set_stage_weights({1.0, 1.0}); });
            refused([&] { pool.queue_start(round % kEnvironments, start); });
            refused([&] { pool.copy_ram(ram.data()); });
            refused([&] { pool.snapshot(round % kEnvironments, 2); });
            refused([&] { pool.restore(round % kEnvironments, start); });
            refused([&] { pool.reset(nullptr, nullptr, nullptr, changed.results()); });
            pool.pending();
        }
    });
    i64 actions[kEnvironments] = {0, 1, 2, 1, 2, 1};
    int played = 0;
    const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    for (int i = 0; (played < 60 || done < 3) && std::chrono::steady_clock::now() < patience; ++i) {
        // Episodes that begin read what the other thread adds to.
        if (i % 3 == 2) refused([&] { pool.reset(nullptr, nullptr, nullptr, buffers.results()); });
        if (i % 2) {
            played += !refused([&] { pool.step(actions, buffers.results()); });
        } else if (!refused([&] { pool.send(actions, buffers.results()); })) {
            while (refused([&] { pool.receive(); })) std::this_thread::yield();
            ++played;
        }
        std::this_thread::sleep_for(std::chrono::microseconds(200));  // the other's turn
    }
    stop = true;
    other.join();
    EXPECT(played >= 60 && done >= 3);
}

void bad_settings(const std::shared_ptr<const Cartridge>& game) {
    const auto refuses = [&](auto change) {
        PoolConfig config = some_config();
        change(config);
        return refused([&] { Pool(game, config); });
    };
    EXPECT(!refuses([](PoolConfig&) {}));
    EXPECT(refuses([](PoolConfig& c) { c.environments = 0; }));
    EXPECT(refuses([](PoolConfig& c) { c.threads = 0; }));
    EXPECT(refuses([](PoolConfig& c) { c.stages = {}; }));
    EXPECT(refuses([](PoolConfig& c) { c.stages = {{9, 9}}; }));
    EXPECT(refuses([](PoolConfig& c) { c.slot.frame_stack = 0; }));
    EXPECT(refuses([](PoolConfig& c) { c.slot.frame_skip = 0; }));
    EXPECT(refuses([](PoolConfig& c) { c.slot.actions = {}; }));
    EXPECT(refuses([](PoolConfig& c) { c.slot.channels = {}; }));
    EXPECT(refuses([](PoolConfig& c) { c.slot.sticky = 1.5; }));
    EXPECT(refuses([](PoolConfig& c) { c.height = 0; }));
    EXPECT(refuses([](PoolConfig& c) { c.height = 240, c.top = 32; }));
    EXPECT(refuses([](PoolConfig& c) { c.width = 257; }));
    EXPECT(refuses([](PoolConfig& c) { c.autoreset = static_cast<Autoreset>(7); }));
}

/// More rooms than have a fixed place in a snapshot come back from one.
void rooms_in_snapshots(const std::shared_ptr<const Cartridge>& game) {
    Pool pool(game, some_config());
    Buffers buffers(pool);
    pool.reset(nullptr, nullptr, nullptr, buffers.results());
    const std::vector<u8> few = pool.snapshot(0, 1);
    const auto at_rooms = [](int field) {
        return static_cast<std::size_t>(smb::kRoomsSeen + field) * kEnvironments;
    };
    EXPECT(buffers.telemetry[at_rooms(0)] == 1);
    // The number of rooms stands in the body behind the sixteen first of them; find it by what it changes.
    const std::size_t behind_pixels = 84 * 84, numbers = 4 + 4 + 8 + 9 * 4 + 8 * 4;
    const std::size_t at = few.size() - behind_pixels - numbers - 4;
    for (int rooms : {17, 64, 65, 1000}) {
        std::vector<u8> many = few;
        std::memcpy(many.data() + at, &rooms, 4);
        const int later = std::min(rooms, 64) - 16;
        for (int i = 0; i < later; ++i) {
            const i32 room[2] = {1000 + i, 3 * i};
            const u8* bytes = reinterpret_cast<const u8*>(room);
            many.insert(many.end(), bytes, bytes + sizeof room);
        }
        test::reseal(many);
        pool.restore(0, many);
        EXPECT(pool.snapshot(0, 1) == many);
        u8 nobody[kEnvironments] = {};
        pool.reset(nobody, nullptr, nullptr, buffers.results());
        EXPECT(buffers.telemetry[at_rooms(0)] == rooms);
        many.pop_back();
        test::reseal(many);
        bool damaged = false;
        try {
            pool.restore(0, many);
        } catch (const SnapshotError&) {
            damaged = true;
        }
        EXPECT(damaged);
    }
}

}  // namespace

int main() {
    const char* path = std::getenv("WARPZONE_ROM");
    if (!path) {
        std::printf("WARPZONE_ROM is not set: nothing was tested\n");
        return 0;
    }
    std::ifstream file(path, std::ios::binary);
    const std::vector<u8> rom{std::istreambuf_iterator<char>(file), {}};
    const auto game = Cartridge::parse(rom);
    bad_settings(game);
    rooms_in_snapshots(game);
    two_threads(game);
    return test::result("pool");
}
