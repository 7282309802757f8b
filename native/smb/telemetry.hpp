#pragma once
#include "smb/game.hpp"
#include "smb/journey.hpp"

namespace wz::smb {

/// What there is to say of an episode beside the console's memory.
struct Episode {
    Journey journey;
    i32 steps = 0, frames = 0;
    i32 stage_index = 0, from_snapshot = 0;
    bool flag = false;
    End end = End::None;

    bool over() const { return end != End::None; }
    bool truncated() const { return end == End::Stalled || end == End::StepLimit; }
    bool terminated() const { return over() && !truncated(); }

    /// After a frame of an episode of `stage`, with the player at `x`.
    void look(const u8* ram, i32 x, Stage stage, bool stood_only);
    /// After a decision. A limit of 0 is none.
    void count_decision(int step_limit, int stall_limit);
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
    kEnd,           ///< End of an episode that is over
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

/// Writes a row of each field, `stride` values apart.
void report(const u8* ram, const Episode& episode, i32* out, std::size_t stride);

}  // namespace wz::smb
