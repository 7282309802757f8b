// Times a vector of environments on one thread: microseconds of processor time a decision. With "turns" it
// times one turn for each line on standard input, so that bench/turns.py can time two builds alternately.
// Needs WARPZONE_ROM. Usage: pool_benchmark [gray|max|undrawn] [turns]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iterator>
#include <string>

#include "pool/pool.hpp"

namespace {

using namespace wz;

constexpr int kEnvironments = 64, kSteps = 8, kRounds = 101;

double processor_us() {
    timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) * 1e6 + static_cast<double>(t.tv_nsec) * 1e-3;
}

/// Random play on several stages, gray 84x84x4.
class Vector {
  public:
    Vector(std::shared_ptr<const Cartridge> cart, bool max_pool)
        : pool_(std::move(cart), config(max_pool)),
          observations_(kEnvironments * pool_.observation_size()),
          telemetry_(kEnvironments * smb::kFieldCount),
          ends_(2 * kEnvironments) {
        std::vector<u64> seeds;
        for (int i = 0; i < kEnvironments; ++i) seeds.push_back(static_cast<u64>(i) + 1);
        pool_.reset(nullptr, seeds.data(), nullptr, results());
        for (int i = 0; i < 40; ++i) turn();
    }

    /// Microseconds a decision.
    double turn() {
        i64 actions[kSteps][kEnvironments];
        for (auto& step : actions)
            for (i64& a : step) a = next() % 2 ? 3 : next() % 7;
        const double began = processor_us();
        for (const auto& step : actions) pool_.step(step, results());
        return (processor_us() - began) / (kSteps * kEnvironments);
    }

  private:
    static PoolConfig config(bool max_pool) {
        PoolConfig c;
        c.environments = kEnvironments;
        c.stages = {{1, 1}, {1, 2}, {3, 2}, {4, 4}, {6, 3}, {8, 1}};
        c.slot.actions = {0, 0x80, 0x81, 0x82, 0x83, 0x01, 0x40};
        c.slot.max_pool = max_pool;
        return c;
    }
    Results results() {
        return {observations_.data(),         telemetry_.data(),    ends_.data(),
                ends_.data() + kEnvironments, observations_.data(), telemetry_.data()};
    }
    i64 next() {
        random_ = random_ * 6364136223846793005ull + 1442695040888963407ull;
        return static_cast<i64>(random_ >> 40);
    }

    Pool pool_;
    std::vector<u8> observations_;
    std::vector<i32> telemetry_;
    std::vector<u8> ends_;
    u64 random_ = 1;
};

/// One console that draws nothing: microseconds for four frames.
class Undrawn {
  public:
    explicit Undrawn(std::shared_ptr<const Cartridge> cart)
        : cart_(std::move(cart)), start_(smb::prepare(*cart_, {1, 1}, Region::Ntsc, false)) {}
    double turn() {
        constexpr int kDecisions = 300;
        Machine m = start_->machine;
        const double began = processor_us();
        for (int i = 0; i < 4 * kDecisions; ++i)
            run_frame(m, *cart_, static_cast<u8>(kRight | kB | (i % 48 < 24 ? kA : 0)), 0, nullptr);
        return (processor_us() - began) / kDecisions;
    }

  private:
    std::shared_ptr<const Cartridge> cart_;
    std::shared_ptr<const smb::Start> start_;
};

template <class Side>
void time(Side side, const std::string& what, bool turns) {
    if (turns) {
        while (std::getchar() != EOF) {
            std::printf("%.3f\n", side.turn());
            std::fflush(stdout);
        }
        return;
    }
    std::vector<double> found;
    for (int i = 0; i < kRounds; ++i) found.push_back(side.turn());
    std::sort(found.begin(), found.end());
    std::printf("%s: %.1f us a decision (middle half %.1f to %.1f)\n", what.c_str(), found[kRounds / 2],
                found[kRounds / 4], found[3 * kRounds / 4]);
}

}  // namespace

int main(int argc, char** argv) {
    const char* rom = std::getenv("WARPZONE_ROM");
    const std::string what = argc > 1 ? argv[1] : "gray";
    const bool turns = argc > 2 && std::string(argv[2]) == "turns";
    if (!rom || !*rom) {
        std::printf("no ROM: nothing to time\n");
        return 0;
    }
    std::ifstream file(rom, std::ios::binary);
    const std::vector<u8> image{std::istreambuf_iterator<char>(file), {}};
    const auto cart = Cartridge::parse(image);
    if (what == "undrawn")
        time(Undrawn(cart), what, turns);
    else
        time(Vector(cart, what == "max"), what, turns);
    return 0;
}
