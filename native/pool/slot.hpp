#pragma once
#include <memory>
#include <vector>

#include "pool/resize.hpp"
#include "smb/game.hpp"

namespace wz {

/// A small random stream, one for each environment (SplitMix64).
struct Random {
    u64 state = 0;
    u64 next() {
        u64 z = (state += 0x9E3779B97F4A7C15ull);
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9ull;
        z = (z ^ z >> 27) * 0x94D049BB133111EBull;
        return z ^ z >> 31;
    }
    double uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }
    int below(int n) { return static_cast<int>((next() >> 32) * static_cast<u64>(n) >> 32); }
};

/// What Python sees of an environment after a step, one int32 each. The order is the row order of the
/// telemetry array.
enum Field : int {
    kXPos,
    kYPos,
    kTime,
    kScore,
    kCoins,
    kLife,
    kWorld,
    kStage,
    kArea,
    kStatus,
    kFlagGet,
    kPlayerState,
    kYViewport,
    kLoopCommand,
    kLoopPartsRight,
    kLoopPartsPassed,
    kProgress,      ///< new ground covered in this episode, in pixels, over all rooms
    kXMax,          ///< largest x_pos in this episode
    kEnd,           ///< smb::End of an episode that is over
    kSteps,         ///< decisions in this episode
    kFrames,        ///< frames in this episode, skipped scenes included
    kStageIndex,    ///< index of the episode's stage in the list of stages
    kRoomsSeen,     ///< different rooms entered in this episode
    kFromSnapshot,  ///< the episode began from a snapshot, not at the stage's start
    kWrongTurns,    ///< times a maze sent the player back or counted a part as passed wrongly in this episode
    kFieldCount
};
inline constexpr const char* kFieldNames[kFieldCount] = {"x_pos",
                                                         "y_pos",
                                                         "time",
                                                         "score",
                                                         "coins",
                                                         "life",
                                                         "world",
                                                         "stage",
                                                         "area",
                                                         "status",
                                                         "flag_get",
                                                         "player_state",
                                                         "y_viewport",
                                                         "loop_command",
                                                         "loop_parts_right",
                                                         "loop_parts_passed",
                                                         "progress",
                                                         "x_max",
                                                         "end",
                                                         "steps",
                                                         "frames",
                                                         "stage_index",
                                                         "rooms_seen",
                                                         "from_snapshot",
                                                         "wrong_turns"};

struct SlotConfig {
    int frame_skip = 4, frame_stack = 4;
    double sticky = 0;
    int noop_max = 0;
    bool max_pool = false;
    bool ground_stood = false;  ///< ground counts where the player stands, not where he flies
    int stall_limit = 0;        ///< decisions without new ground before the episode is cut off; 0: never
    int step_limit = 0;         ///< decisions before it is cut off; 0: never
    std::vector<Channel> channels = {Channel::Gray};
    std::vector<u8> actions;  ///< action number -> buttons
};

/// Progress through the rooms of an episode. Ground counts once: going back and coming again earns nothing.
struct Journey {
    static constexpr int kRooms = 16;
    u32 room[kRooms] = {};
    i32 furthest[kRooms] = {};
    i32 rooms = 0;
    i32 progress = 0, x_max = 0;
    i32 since_progress = 0;  ///< decisions without any
    i32 wrong_turns = 0;     ///< of a maze, by the game's own judgement

    void begin(const u8* ram);
    void look(const u8* ram, bool stood_only);

    static constexpr u32 kNowhere = ~0u;
    u32 last_room = kNowhere;  ///< at the last look; nowhere while the player was not in control
    i32 last_x = 0, last_passed = 0, last_right = 0;

  private:
    void look_for_wrong_turn(const u8* ram, u32 here, i32 x);
};

/// One environment: a console, its episode, and the pictures the agent sees.
class Slot {
  public:
    Slot(std::shared_ptr<const Cartridge> cartridge, const SlotConfig& config, const Resizer& resizer);

    void seed(u64 value) { episode_.random.state = value; }
    Random& random() { return episode_.random; }

    /// Begins an episode at the start of a stage, after up to `noop_max` random idle frames.
    void begin(const smb::Start& start, smb::Stage stage, int stage_index);
    /// Begins an episode from a snapshot.
    void begin(const std::vector<u8>& snapshot, int stage_index);

    /// One decision: `frame_skip` frames with the action held, fewer if the episode ends.
    void step(int action);

    bool over() const { return episode_.end != smb::End::None; }
    bool terminated() const { return over() && !truncated(); }
    bool truncated() const {
        return episode_.end == smb::End::Stalled || episode_.end == smb::End::StepLimit;
    }

    void observe(u8* out) const;
    void report(i32* out, std::size_t stride) const;

    const Machine& machine() const { return machine_; }
    /// Draws what is on the screen. Frames are not kept: the last one is played again.
    void draw(Frame& out);
    smb::Stage stage() const { return stage_; }

    /// The console, the episode and the newest `frames` pictures of the stack, as bytes.
    std::vector<u8> save(int frames) const;
    /// Throws SnapshotError and leaves the slot as it was.
    void load(const std::vector<u8>& blob);

    std::size_t observation_size() const { return plane_ * static_cast<std::size_t>(config_->frame_stack); }

  private:
    /// Where drawing goes. Each thread has its own, so that it stays in the cache whatever slot is at work.
    struct Canvas {
        Frame newest, previous;
        bool have_previous = false;  ///< both were drawn, for max_pool
    };
    static Canvas& canvas();

    /// All that playing frames changes, beside the console.
    struct Episode {
        Random random;
        Journey journey;
        i32 steps = 0, frames = 0;
        u8 held = 0;
        bool flag = false;
        smb::End end = smb::End::None;
    };
    /// How the picture on the screen came about, from `before_` on.
    enum class Scene : u8 { Start, Idle, Held, Restored };

    void play(u8 buttons, Frame* out);
    /// Plays up to `count` frames, drawing the last `draw_last`; stops when the episode ends. Returns frames
    /// played.
    int hold(u8 buttons, int count, int draw_last, Canvas& on);
    void see(const Canvas& canvas);
    void fill_stack(const Canvas& canvas);
    void keep_before(Scene scene, u8 buttons, int count);

    std::shared_ptr<const Cartridge> cartridge_;
    const SlotConfig* config_;
    const Resizer* resizer_;
    std::size_t plane_;         ///< bytes of one picture, all channels
    Machine machine_, before_;  ///< now, and before the last decision
    Episode episode_, episode_before_;
    Scene scene_ = Scene::Restored;
    u8 scene_buttons_ = 0;
    i32 scene_frames_ = 0;
    const smb::Start* start_ = nullptr;  ///< of this episode; the pool's
    std::vector<u8> stack_;              ///< ring of pictures
    int newest_ = 0;

    smb::Stage stage_;
    i32 stage_index_ = 0, from_snapshot_ = 0;
};

}  // namespace wz
