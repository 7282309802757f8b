#include "smb/telemetry.hpp"

namespace wz::smb {

void Episode::look(const u8* ram, i32 x, Stage stage, bool stood_only) {
    end = episode_end(ram, stage);
    flag = flag_get(ram);
    journey.look(ram, x, stood_only);
}

void Episode::count_decision(int step_limit, int stall_limit) {
    ++steps;
    ++journey.since_progress;
    if (over()) return;
    if (step_limit > 0 && steps >= step_limit) end = End::StepLimit;
    if (stall_limit > 0 && journey.since_progress >= stall_limit) end = End::Stalled;
}

void report(const u8* r, const Episode& e, i32* out, std::size_t stride) {
    auto put = [&](Field f, i32 v) { out[static_cast<std::size_t>(f) * stride] = v; };
    put(kXPos, x_pos(r));
    put(kYPos, y_pos(r));
    put(kTime, time_left(r));
    put(kScore, digits(r, at::kScore, 6));
    put(kCoins, digits(r, at::kCoins, 2));
    put(kLife, r[at::kLives]);
    put(kWorld, r[at::kWorld] + 1);
    put(kStage, r[at::kStage] + 1);
    put(kArea, r[at::kArea] + 1);
    put(kStatus, r[at::kStatus]);
    put(kFlagGet, e.flag);
    put(kPlayerState, r[at::kPlayerState]);
    put(kYViewport, r[at::kViewportY]);
    put(kLoopCommand, r[at::kLoopCommand]);
    put(kLoopPartsRight, r[at::kLoopPartsRight]);
    put(kLoopPartsPassed, r[at::kLoopPartsPassed]);
    put(kProgress, e.journey.progress);
    put(kXMax, e.journey.x_max);
    put(kEnd, static_cast<i32>(e.end));
    put(kSteps, e.steps);
    put(kFrames, e.frames);
    put(kStageIndex, e.stage_index);
    put(kRoomsSeen, e.journey.rooms);
    put(kFromSnapshot, e.from_snapshot);
    put(kWrongTurns, e.journey.wrong_turns);
}

}  // namespace wz::smb
