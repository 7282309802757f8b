// One translation, many users: threads that all start on cold code, and children forked while others
// translate.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <thread>

#include "tests/jit_random_program.hpp"

namespace {

using namespace wz;
using test::Random;

constexpr int kFrames = 40, kThreads = 6, kChildren = 12;

/// Plays from power-on with scrambled RAM, starting each frame somewhere else, so that every seed meets much
/// code that nobody has translated yet.
void play(Machine& m, const Cartridge& cart, u64 seed, bool translate) {
    Random r(seed);
    power_on(m, cart, Region::Ntsc);
    for (u8& b : m.ram) b = r.byte();
    for (int i = 0; i < kFrames; ++i) {
        m.jammed = 0;
        m.pc = static_cast<u16>(0x8000 | r.next());
        run_frame(m, cart, r.byte(), 0, nullptr, {true, translate});
    }
}

bool same_either_way(const Cartridge& cart, u64 seed) {
    Machine translated, interpreted;
    play(translated, cart, seed, true);
    play(interpreted, cart, seed, false);
    return translated.clock == interpreted.clock && translated.pc == interpreted.pc &&
           std::memcmp(translated.ram, interpreted.ram, sizeof translated.ram) == 0;
}

std::shared_ptr<const Cartridge> fresh_cartridge(u64 seed) {
    Random r(seed);
    return cartridge_of(test::structured_program(r), r);
}

int threads_on_cold_code() {
    std::atomic<int> wrong = 0;
    for (u64 round = 0; round < 6; ++round) {
        const auto cart = fresh_cartridge(round);
        std::vector<std::thread> threads;
        for (u64 i = 0; i < kThreads; ++i)
            threads.emplace_back([&, i] { wrong += !same_either_way(*cart, round * kThreads + i); });
        for (auto& t : threads) t.join();
    }
    return wrong;
}

int children_of_a_busy_parent() {
    const auto cart = fresh_cartridge(100);
    std::atomic<bool> stop = false;
    std::thread busy([&] {
        for (u64 seed = 0; !stop; ++seed) {
            Machine m;
            play(m, *cart, seed, true);
        }
    });
    int wrong = 0;
    for (u64 i = 0; i < kChildren; ++i) {
        const pid_t child = fork();
        if (child == 0) {
            alarm(60);  // a child that waits for a lock nobody holds must not wait forever
            _exit(same_either_way(*cart, 1000 + i) ? 0 : 1);
        }
        int status = 0;
        if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status) ||
            WEXITSTATUS(status) != 0)
            ++wrong;
    }
    stop = true;
    busy.join();
    return wrong;
}

}  // namespace

int main() {
    if (!fresh_cartridge(0)->translation) {
        std::printf("no translation on this machine\n");
        return 0;
    }
    const int threads = threads_on_cold_code();
    const int children = children_of_a_busy_parent();
    std::printf("threads: %d wrong; children: %d wrong\n", threads, children);
    return threads + children != 0;
}
