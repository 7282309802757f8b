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

/// The console at the first frame that the player controls, with the picture on its screen; and shortly
/// before, when the stage is there and nothing in it has moved.
struct Start {
    Machine machine;
    Frame frame;
    Machine opened;
    u8 count = 0;  ///< of frames, one before this; where the game has a walk-in, that behind it
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

/// From `Start::opened` to one frame before `Start::machine`: the next frame, without buttons, is the first
/// that the player controls. Keeps the last such moment on the way in `opened`, if that is given. Throws
/// GameError like `prepare`.
void set_up(Machine& m, const Cartridge& c, Machine* opened = nullptr);

/// Sets the game's random numbers and its slow timer to where they would be if this moment had come so many
/// frames later. The frame counter stays: the game sets it to 0 wherever an area begins.
void pass_time(Machine& m, int frames);

/// Longest scene a game shows without the player, in frames: far longer than any in Super Mario Bros (about
/// 20 seconds).
inline constexpr int kLongestScene = 60 * 60;

/// After a frame in which the episode did not end: hurries through what the player can't influence (dying,
/// pipes, black screens), as gym-super-mario-bros does. The whole game is not hurried: nothing is written to
/// it, so each of its stages begins at the moment at which it begins on a console. Draws every frame into
/// `out` unless it is null, so that the last one stays. Returns the frames spent.
int skip_scenes(Machine& m, const Cartridge& c, bool whole_game, Frame* out);

/// Whether and why the episode is over, looking at the RAM after a frame.
End episode_end(const u8* ram, Stage stage);

}  // namespace wz::smb
