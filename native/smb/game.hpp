#pragma once
#include <memory>
#include <span>
#include <string>

#include "smb/memory.hpp"

namespace wz::smb {

/// Where an episode begins. World 0 is the whole game from its title screen.
struct Stage {
    int world = 1, stage = 1;
    bool whole_game() const { return world == 0; }
    bool operator==(const Stage&) const = default;
};
inline std::string name(Stage s) {
    return s.whole_game() ? "the whole game"
                          : "stage " + std::to_string(s.world) + "-" + std::to_string(s.stage);
}

/// Why an episode ended.
enum class End : u8 { None, Death, Flag, Axe, TimeUp, GameOver, Warp, Stalled, StepLimit };

/// The console at the first frame that the player controls, with the picture on its screen.
struct Start {
    Machine machine;
    Frame frame;
};

/// The game could not be brought where it was asked to go.
struct GameError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// `Machine::wram_used` where `wram` holds what it was given and the program has not written there since.
inline constexpr u8 kGiven = 2;

/// Plays from power-on to the start of a stage, with `memory` at $6000. Throws GameError when the ROM does
/// not behave like the game.
std::shared_ptr<const Start> prepare(const Cartridge& c, Stage stage, Region region, bool lost_levels,
                                     std::span<const u8> memory = {});

/// Sets the game's clock (its frame counter, its slow timer and its random numbers) to where it would be if
/// this moment had come so many frames later, for example after a longer wait at the title screen.
void pass_time(Machine& m, int frames);

/// Longest scene a game shows without the player, in frames: far longer than any in Super Mario Bros (about
/// 20 seconds).
inline constexpr int kLongestScene = 60 * 60;

/// After a frame in which the episode did not end: hurries through what the player can't influence (dying,
/// pipes, black screens), as gym-super-mario-bros does. Draws every frame into `out` unless it is null, so
/// that the last one stays. Returns the frames spent.
int skip_scenes(Machine& m, const Cartridge& c, bool whole_game, Frame* out);

/// Whether and why the episode is over, looking at the RAM after a frame.
End episode_end(const u8* ram, Stage stage);

}  // namespace wz::smb
