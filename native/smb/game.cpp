#include "smb/game.hpp"

#include <algorithm>

namespace wz::smb {
namespace {

/// Whether the second stage of this world, underground or in the water, begins with a walk-in. The game
/// counts it as an area of its own.
bool has_walk_in(int world, bool lost_levels) {
    return world == 1 || (lost_levels ? world == 3 : world == 2 || world == 4 || world == 7);
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
    Patience patience;
    auto advance = [&](Machine& m, u8 buttons) {
        patience.frame(m);
        run_frame(m, c, buttons, 0, nullptr);
    };
    auto open = [&](Machine& m, int area) {
        power_on(m, c, region);
        if (!memory.empty()) {
            std::copy_n(memory.begin(), std::min(memory.size(), sizeof m.wram), m.wram);
            m.wram_used = kGiven;
        }
        // The console's first frame is over before the program looks at anything.
        advance(m, 0);
        advance(m, kStart);
        advance(m, 0);
        while (time_left(m.ram) == 0) {
            advance(m, kStart);
            if (!stage.whole_game()) {
                m.ram[at::kWorld] = static_cast<u8>(stage.world - 1);
                m.ram[at::kStage] = static_cast<u8>(stage.stage - 1);
                m.ram[at::kArea] = static_cast<u8>(area);
            }
            advance(m, 0);
            m.ram[at::kPreLevelTimer] = 0;
        }
    };
    const bool walk_in = has_walk_in(stage.world, lost_levels);
    open(start->opened, stage.stage - 1 + (walk_in && stage.stage >= 2 ? 1 : 0));
    start->machine = start->opened;
    set_up(start->machine, c, &start->opened);
    start->count = start->machine.ram[at::kFrameCounter];
    if (walk_in && stage.stage == 2 && memory.empty()) {  // no walk-in leads to levels
        const auto walking = std::make_unique<Machine>();
        open(*walking, stage.stage - 1);
        for (int last = time_left(walking->ram); time_left(walking->ram) >= last;) {
            last = time_left(walking->ram);
            // The title screen is left by a button that is pressed anew.
            if (walking->ram[at::kMode] == kModeTitle) advance(*walking, kStart);
            start->count = walking->ram[at::kFrameCounter];
            advance(*walking, 0);
        }
    }
    run_frame(start->machine, c, 0, 0, &start->frame);
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
