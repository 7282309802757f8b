#include "smb/game.hpp"

#include <algorithm>

namespace wz::smb {
namespace {

/// The game counts the walk-in before an underground or water stage as an area of its own.
int first_area(Stage s, bool lost_levels) {
    const bool walk_in = lost_levels ? s.world == 1 || s.world == 3
                                     : s.world == 1 || s.world == 2 || s.world == 4 || s.world == 7;
    return s.stage + (walk_in && s.stage >= 2 ? 1 : 0);
}

/// Counts the frames until the player has control, which must come.
class Patience {
  public:
    void frame(const Machine& m) {
        if (++frames_ > kLongestScene || m.jammed)
            throw GameError(
                "The ROM did not reach the start of a stage within a minute: it does not seem to be "
                "Super Mario Bros.");
    }

  private:
    int frames_ = 0;
};

}  // namespace

void set_up(Machine& m, const Cartridge& c, Machine* opened) {
    Patience patience;
    auto before = std::make_unique<Machine>();
    auto advance = [&](u8 buttons) {
        patience.frame(m);
        run_frame(m, c, buttons, 0, nullptr);
    };
    for (int last = time_left(m.ram); time_left(m.ram) >= last;) {
        last = time_left(m.ram);
        if (opened && m.ram[at::kTask] != kPlaying) copy_machine(*opened, m, c);
        advance(kStart);
        copy_machine(*before, m, c);
        advance(0);
    }
    copy_machine(m, *before, c);
}

std::shared_ptr<const Start> prepare(const Cartridge& c, Stage stage, Region region, bool lost_levels,
                                     std::span<const u8> memory) {
    auto start = std::make_shared<Start>();
    Machine& m = start->machine;
    power_on(m, c, region);
    if (!memory.empty()) {
        std::copy_n(memory.begin(), std::min(memory.size(), sizeof m.wram), m.wram);
        m.wram_used = kGiven;
    }
    Patience patience;
    auto advance = [&](u8 buttons) {
        patience.frame(m);
        run_frame(m, c, buttons, 0, nullptr);
    };
    // The console's first frame is over before the program looks at anything.
    advance(0);
    advance(kStart);
    advance(0);
    while (time_left(m.ram) == 0) {
        advance(kStart);
        if (!stage.whole_game()) {
            m.ram[at::kWorld] = static_cast<u8>(stage.world - 1);
            m.ram[at::kStage] = static_cast<u8>(stage.stage - 1);
            m.ram[at::kArea] = static_cast<u8>(first_area(stage, lost_levels) - 1);
        }
        advance(0);
        m.ram[at::kPreLevelTimer] = 0;
    }
    start->opened = m;
    set_up(m, c, &start->opened);
    run_frame(m, c, 0, 0, &start->frame);
    return start;
}

void pass_time(Machine& m, int frames) {
    // It counts down from 17 (European dumps) or 20; what the shorter one has is possible in both.
    constexpr int kIntervalFrames = 18;
    u8* const r = m.ram;
    r[at::kInterval] =
        static_cast<u8>((r[at::kInterval] + kIntervalFrames - frames % kIntervalFrames) % kIntervalFrames);
    // A shift register of 56 bits; what comes in on the left is the sum of two of them.
    u64 bits = 0;
    for (int i = 0; i < 7; ++i) bits = bits << 8 | r[at::kRandom + i];
    for (; frames > 0; --frames) bits = bits >> 1 | ((bits >> 49 ^ bits >> 41) & 1) << 55;
    for (int i = 6; i >= 0; --i, bits >>= 8) r[at::kRandom + i] = static_cast<u8>(bits);
}

int skip_scenes(Machine& m, const Cartridge& c, bool whole_game, Frame* out) {
    u8* const r = m.ram;
    int frames = 0;
    auto advance = [&] {
        run_frame(m, c, 0, 0, out);
        return ++frames < kLongestScene && !m.jammed;
    };
    if (whole_game) {
        while ((busy(r) || world_over(r) || dying(r) || dead(r)) && !game_over(r) && advance()) {
        }
        return frames;
    }
    if (dying(r)) {
        r[at::kPlayerState] = kDead;
        advance();
    }
    if (r[at::kAreaChangeTimer] > 1 && r[at::kAreaChangeTimer] < 255) r[at::kAreaChangeTimer] = 1;
    while (busy(r) || world_over(r)) {
        r[at::kPreLevelTimer] = 0;
        if (!advance()) break;
    }
    return frames;
}

End episode_end(const u8* r, Stage stage) {
    if (stage.whole_game()) {
        if (game_over(r)) return End::GameOver;
        return world_over(r) && r[at::kWorld] == kLastWorld ? End::Axe : End::None;
    }
    if (dying(r) || dead(r)) return time_left(r) == 0 ? End::TimeUp : End::Death;
    if (world_over(r)) return End::Axe;
    if (stage_over(r)) return End::Flag;
    // A warp zone leads to another world without a flag.
    if (r[at::kWorld] + 1 != stage.world || r[at::kStage] + 1 != stage.stage) return End::Warp;
    return End::None;
}

}  // namespace wz::smb
