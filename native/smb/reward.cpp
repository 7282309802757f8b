#include "smb/reward.hpp"

#include <cmath>

namespace wz::smb {

void shape_rewards(const RewardRule& rule, const i32* before, const i32* after, const bool* fresh,
                   std::size_t n, float* terms, float* total, i32* dx) {
    const auto change = [&](Field f, std::size_t i) {
        const auto at = static_cast<std::size_t>(f) * n + i;
        return after[at] - before[at];
    };
    const auto value = [&](const i32* from, Field f, std::size_t i) {
        return from[static_cast<std::size_t>(f) * n + i];
    };
    for (std::size_t i = 0; i < n; ++i) {
        dx[i] = change(kXPos, i);
        double paid = 0;
        if (rule.signed_distance) {
            if (std::abs(dx[i]) <= rule.cap) paid = dx[i];
        } else {
            const i32 ground = change(kProgress, i);
            paid = ground <= 0 ? 0 : std::fmin(ground, rule.cap);
        }
        const i32 points = change(kScore, i), ticks = change(kTime, i);
        // The game's counter goes from 99 to 0.
        const i32 more = change(kCoins, i), coins = more < 0 ? more + 100 : more;
        const bool flag = value(after, kFlagGet, i) != 0 && value(before, kFlagGet, i) == 0;
        const i32 end = value(after, kEnd, i);
        // In the whole game an episode survives the loss of a life.
        const bool died = end == static_cast<i32>(End::Death) || end == static_cast<i32>(End::TimeUp) ||
                          end == static_cast<i32>(End::GameOver) || change(kLife, i) < 0;
        const float amounts[kClipTerm] = {static_cast<float>(paid),
                                          static_cast<float>(points > 0 ? points : 0),
                                          static_cast<float>(flag),
                                          static_cast<float>(died),
                                          static_cast<float>(ticks < 0 ? ticks : 0),
                                          static_cast<float>(change(kWrongTurns, i)),
                                          static_cast<float>(coins > 0 ? coins : 0)};
        float sum = 0;
        for (int t = 0; t < kClipTerm; ++t) {
            const float term = fresh[i] ? 0.0f : amounts[t] * rule.worth[t];
            terms[static_cast<std::size_t>(t) * n + i] = term;
            sum = t == 0 ? term : sum + term;
        }
        const float clipped = std::fmin(std::fmax(sum, -rule.clip), rule.clip) - sum;
        terms[static_cast<std::size_t>(kClipTerm) * n + i] = clipped;
        total[i] = sum + clipped;
    }
}

}  // namespace wz::smb
