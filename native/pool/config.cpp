#include "pool/config.hpp"

#include <string>

namespace wz {
namespace {

void require(const char* name, int value, int least, int most) {
    if (value < least || value > most)
        throw PoolError(std::string(name) + " must be " + std::to_string(least) + " to " +
                        std::to_string(most) + ", not " + std::to_string(value) + ".");
}

}  // namespace

void check(const PoolConfig& c) {
    constexpr int kMost = 1 << 20, kMostWorlds = 13, kStagesInWorld = 4;
    const SlotConfig& s = c.slot;
    require("environments", c.environments, 1, kMost);
    require("threads", c.threads, 1, 1024);
    require("frame_skip", s.frame_skip, 1, kMost);
    require("frame_skip_noise", s.frame_skip_noise, 0, s.frame_skip - 1);
    require("frame_stack", s.frame_stack, 1, 256);
    require("top", c.top, 0, Frame::kHeight - 1);
    require("height", c.height, 1, Frame::kHeight - c.top);
    require("width", c.width, 1, Frame::kWidth);
    require("noop_max", s.noop_max, 0, kMost);
    require("stall_limit", s.stall_limit, 0, INT32_MAX);
    require("step_limit", s.step_limit, 0, INT32_MAX);
    require("autoreset", static_cast<int>(c.autoreset), 0, static_cast<int>(Autoreset::Disabled));
    if (!(s.sticky >= 0 && s.sticky <= 1)) throw PoolError("sticky is a probability, 0 to 1.");
    if (!(s.random_start >= 0 && s.random_start <= 1)) throw PoolError("random_start is a share, 0 to 1.");
    if (s.channels.empty()) throw PoolError("channels must name at least one of y, r, g and b.");
    if (s.actions.empty()) throw PoolError("actions must hold the buttons of at least one action.");
    if (c.stages.empty()) throw PoolError("stages must hold at least one (world, stage).");
    if (!c.memories.empty() && c.memories.size() != c.stages.size())
        throw PoolError("memories must hold the bytes at $6000 for each of the stages, or nothing.");
    for (const auto& memory : c.memories)
        if (memory.size() > sizeof(Machine::wram))
            throw PoolError("memories must hold at most 8192 bytes for a stage.");
    for (const smb::Stage& stage : c.stages)
        if (!stage.whole_game() &&
            (stage.world < 1 || stage.world > kMostWorlds || stage.stage < 1 || stage.stage > kStagesInWorld))
            throw PoolError("There is no stage " + std::to_string(stage.world) + "-" +
                            std::to_string(stage.stage) +
                            ": worlds are 1 to 13 (0: the whole game), stages 1 to 4.");
}

}  // namespace wz
