#pragma once
#include <stdexcept>
#include <vector>

#include "pool/resize.hpp"
#include "smb/game.hpp"

namespace wz {

/// A call that does not fit the pool or its state. The message is a sentence for the user.
struct PoolError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// When an environment whose episode is over begins the next one (names as in Gymnasium).
enum class Autoreset : u8 { NextStep, SameStep, Disabled };

/// What an environment plays and how the agent sees it.
struct SlotConfig {
    Region region = Region::Ntsc;
    int frame_skip = 4, frame_stack = 4;
    int frame_skip_noise = 0;  ///< frames by which an action is held longer or shorter, at most
    double sticky = 0;
    int noop_max = 0;
    double random_start = 0;  ///< share of the episodes that begin as if in the middle of a game
    bool max_pool = false;
    bool show_buttons = false;  ///< the agent sees the buttons of each frame, in blocks at its top
    bool levels = false;        ///< stages may be anybody's: one that crashes the game ends the episode
    bool ground_stood = false;  ///< ground counts where the player stands, not where he flies
    int stall_limit = 0;        ///< decisions without new ground before the episode is truncated; 0: never
    int step_limit = 0;         ///< decisions before it is truncated; 0: never
    std::vector<Channel> channels = {Channel::Gray};
    std::vector<u8> actions;  ///< action number -> buttons
};

struct PoolConfig {
    int environments = 1, threads = 1;
    int height = 84, width = 84, top = 0;
    Palette palette = Palette::NesPy;
    Autoreset autoreset = Autoreset::NextStep;
    bool lost_levels = false, pin = true;
    std::vector<smb::Stage> stages;
    std::vector<std::vector<u8>> memories;  ///< what each stage finds at $6000; none, or one for each
    SlotConfig slot;
};

/// Every setting by the name that Python has for it.
template <class Visitor>
void visit(PoolConfig& c, Visitor&& v) {
    SlotConfig& s = c.slot;
    v("environments", c.environments), v("threads", c.threads), v("frame_skip", s.frame_skip);
    v("frame_skip_noise", s.frame_skip_noise);
    v("frame_stack", s.frame_stack), v("height", c.height), v("width", c.width), v("top", c.top);
    v("channels", s.channels), v("measured_palette", c.palette), v("sticky", s.sticky);
    v("noop_max", s.noop_max), v("random_start", s.random_start), v("max_pool", s.max_pool);
    v("show_buttons", s.show_buttons);
    v("ground_stood", s.ground_stood);
    v("stall_limit", s.stall_limit), v("step_limit", s.step_limit), v("autoreset", c.autoreset);
    v("pal", s.region), v("lost_levels", c.lost_levels), v("pin", c.pin);
    v("stages", c.stages), v("memories", c.memories), v("levels", s.levels), v("actions", s.actions);
}

/// Throws PoolError where a pool can't be made of these.
void check(const PoolConfig& config);

}  // namespace wz
