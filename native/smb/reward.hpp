#pragma once
#include <cstddef>

#include "smb/telemetry.hpp"

namespace wz::smb {

/// The terms of a reward, in the order of their rows.
enum RewardTerm : int {
    kDistanceTerm,
    kScoreTerm,
    kFlagTerm,
    kDeathTerm,
    kTimeTerm,
    kMazeTerm,
    kCoinTerm,
    kClipTerm,  ///< what clipping the sum of the others adds to it
    kRewardTerms
};

/// What the terms are worth, scale included. The reference is tests/envs/reward_reference.py: same sums, same
/// rounding.
struct RewardRule {
    bool signed_distance;
    double cap;
    float clip;  ///< largest reward and penalty; infinite: not clipped
    float worth[kClipTerm];
};

/// Rewards of `n` environments from two successive telemetries [kFieldCount][n]: terms [kRewardTerms][n],
/// their sum and the movement. Those in `fresh` only began an episode and earn nothing.
void shape_rewards(const RewardRule& rule, const i32* before, const i32* after, const bool* fresh,
                   std::size_t n, float* terms, float* total, i32* dx);

}  // namespace wz::smb
