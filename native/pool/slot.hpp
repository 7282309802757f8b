#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "pool/config.hpp"
#include "pool/random.hpp"
#include "smb/telemetry.hpp"

namespace wz {

/// The index of the stage that a console plays, given the one it was saved with; -1 if it is none of the
/// pool's. A moment of a whole game may become one of its stage, and the other way round: `stage` is then
/// changed.
using StageLookup = std::function<int(smb::Stage& stage, const Machine& machine, int saved)>;

/// One environment: a console, its episode, and the pictures the agent sees.
class Slot {
  public:
    Slot(std::shared_ptr<const Cartridge> cartridge, const SlotConfig& config, const Resizer& resizer);

    void seed(u64 value) { episode_.random.state = value; }
    Random& random() { return episode_.random; }

    /// Begins an episode at the start of a stage, after up to `noop_max` random idle frames.
    void begin(std::shared_ptr<const smb::Start> start, smb::Stage stage, int stage_index);
    /// Begins an episode from a snapshot; throws like `load`.
    void begin(const std::vector<u8>& snapshot, const StageLookup& lookup);

    /// One decision: about `frame_skip` frames with the action held, fewer if the episode ends.
    void step(int action);

    const smb::Episode& episode() const { return episode_; }
    bool over() const { return episode_.over(); }

    void observe(u8* out) const;
    void report(i32* out, std::size_t stride) const { smb::report(machine_.ram, episode_, out, stride); }

    const Machine& machine() const { return machine_; }
    /// Draws what is on the screen. Frames are not kept: the last one is played again.
    void draw(Frame& out);

    /// The console, the episode and the newest `frames` pictures of the stack, as bytes.
    std::vector<u8> save(int frames) const;
    /// Throws SnapshotError and leaves the slot as it was. The snapshot's stage must be one of the pool's:
    /// its index among them counts, not the one it had where it was saved.
    void load(const std::vector<u8>& blob, const StageLookup& lookup);

    std::size_t observation_size() const { return plane_ * static_cast<std::size_t>(config_->frame_stack); }

  private:
    /// Where drawing goes. Each thread has its own, so that it stays in the cache whatever slot is at work.
    struct Canvas {
        Frame newest, previous;
        bool have_previous = false;  ///< both were drawn, for max_pool
        Resizer::WhileDrawn shrink;  ///< reads `newest` where the agent sees one channel
    };
    /// This thread's, for pictures in colour or as the agent sees them.
    Canvas& canvas(bool coloured = false) const;

    /// All that playing frames changes, beside the console.
    struct Episode : smb::Episode {
        Random random;
        u8 held = 0;
    };
    /// How the picture on the screen came about, from `before_` on.
    enum class Scene : u8 { Start, Idle, Held, Restored };

    void play(u8 buttons, Frame* out);
    /// Plays up to `count` frames, drawing the last `draw_last`; stops when the episode ends. Returns frames
    /// played.
    int hold(u8 buttons, int count, int draw_last, Canvas& on);
    /// Where the next picture goes.
    u8* next_plane();
    /// Takes frames, or what was shrunk while they were drawn, onto the stack.
    void see(const Frame& newest, const Frame* previous);
    void fill_stack(const Frame& frame);
    /// Draws a row of eight blocks over the top of the newest picture: white for each button that is held.
    void draw_buttons();
    /// Whether this episode is one of those that begin as if in the middle of a game.
    bool draws_random_start();
    /// Lets the game's random numbers and its slow timer be those of a random moment.
    void turn_clock();
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
    std::shared_ptr<const smb::Start> start_;  ///< of this episode
    std::vector<u8> stack_;                    ///< ring of pictures
    int newest_ = 0;

    smb::Stage stage_;
};

}  // namespace wz
