#pragma once
#include <array>
#include <functional>
#include <string>

#include "compat/console.hpp"
#include "threads/team.hpp"

/// The rules of gym-super-mario-bros 7 on that console: how an episode begins, what a step gives, which
/// scenes are skipped.
namespace wz::compat {

/// A game that never reaches what the original waits for; it would wait for ever.
struct StuckError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// World, stage and area as the game counts them, from 0; a negative world for the whole game.
struct Target {
    int world = -1, stage = 0, area = 0;
    bool single() const { return world >= 0; }
};

enum Field {
    kCoins,
    kFlagGet,
    kLife,
    kScore,
    kStageField,
    kStatus,
    kTime,
    kWorldField,
    kXPos,
    kYPos,
    kFields
};
using Info = std::array<i64, kFields>;

/// What the last step is compared with.
struct Last {
    i64 time = 0, x = 0;
};

struct Outcome {
    double reward;
    bool done;
    Info info;
};

/// A console with memory for its screen and for one backup, neither of which moves.
class Player {
  public:
    Player(std::shared_ptr<const Game> game, bool has_wram, Screen screen);

    void reset() { compat::reset(console_); }
    void frame(u8 buttons);
    /// Runs a frame with the buttons that are held.
    void frame() { compat::step(console_); }
    void backup();
    void restore();
    /// Everything, with the backup, for a player of the same build; `load` says whether it was one's.
    void save(std::vector<u8>& out) const;
    bool load(const u8* from, std::size_t size);

    /// From the reset to the first frame of play.
    void skip_start_screen(const Target& target);
    /// The start of another player with the same cartridge, as `restore` would give it there.
    void begin_like(const Player& other);
    /// From now on the screen is there, and `shown` what it shows. It is complete after the next frame or
    /// start.
    void draw_to(u8* pixels, Shown* shown) {
        console_.screen.pixels = pixels;
        console_.shown = shown;
    }
    /// Forget the last step: the next one is compared with now.
    void mark();
    /// What gym-super-mario-bros does in a step with the buttons that are held.
    Outcome play(bool single);

    Console& console() { return console_; }
    const u8* ram() const { return console_.state.shell.ram; }
    Last last;

  private:
    void skip_scenes(bool single);

    Console console_;
    State saved_;
    std::vector<u8> saved_screen_;
};

/// N players on M threads, each of them a single environment.
class Players {
  public:
    /// For each environment, in memory that does not move.
    struct Arrays {
        const i64* start;  ///< which of the targets its next episode has
        i64* info;         ///< [kFields][environments]
        double* reward;
        u8* done;
    };
    /// `targets`: where episodes may begin. `owned`: nobody else writes to the observations, and behind them,
    /// in the same memory, is what they show, as `prepare` has put it there.
    Players(std::shared_ptr<const Game> game, bool has_wram, std::vector<Target> targets, int environments,
            int threads, bool owned, const Arrays& arrays);

    /// Begins an episode where `mask[i]` is set. Its frame goes to observations
    /// [environments][240][256][3], whole, and so does that of a step, which runs for more than a frame: each
    /// call may bring other memory.
    void reset(const u8* mask, u8* observations);
    /// A step of every environment; those that are over begin anew, as by `reset`.
    void step(const u8* buttons, u8* observations);
    int environments() const { return static_cast<int>(players_.size()); }
    bool owned() const { return owned_; }
    /// Bytes of the observations, and of what is behind them.
    std::size_t memory_size() const { return frames_size() + (owned_ ? players_.size() * sizeof(Shown) : 0); }
    std::size_t frames_size() const { return players_.size() * Screen{nullptr, true}.size(); }
    void prepare(u8* observations) const;
    const Player& player(int i) const { return *players_[static_cast<std::size_t>(i)]; }

  private:
    void run(const std::function<void(int)>& item);
    void begin(std::size_t i, u8* observations);
    /// The player draws its part of the observations.
    Player& on(std::size_t i, u8* observations);
    Shown* shown(std::size_t i, u8* observations);
    void report(std::size_t i, const Outcome& out);

    std::vector<Target> targets_;
    std::vector<std::unique_ptr<Player>> origins_, players_;
    std::vector<u8> origin_screens_;
    std::vector<i64> start_of_;
    const bool owned_;
    std::vector<Shown> unkept_;  ///< of each environment, if others may write to the observations
    Arrays arrays_;
    Team team_;
};

/// What `info` says, from the RAM.
Info info_of(const u8* ram);

}  // namespace wz::compat
