#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "net/categorical.hpp"
#include "net/layer.hpp"

namespace warpzone::net {

/// What is being minimised: mean(policy loss) + value_coefficient * mean(value loss) - entropy_coefficient *
/// mean(entropy). The policy loss is -min(r A, clip(r) A) where `clipped`, else the plain -log p A.
struct PpoSettings {
    bool clipped;
    float clip;               ///< The probability ratio r counts only within [1 - clip, 1 + clip].
    float value_coefficient;  ///< Weight of the value loss, (v - target)^2 / 2.
    float value_clip;         ///< Farthest the value may move from the old one and still count; 0: no limit.
    float entropy_coefficient;
};

/// The columns of a batch, one entry per sample.
struct PpoBatch {
    const std::int64_t* actions;
    const std::int64_t* stages;  ///< Which value head judges each sample; null: the first.
    const float* old_logp;
    const float* advantages;
    const float* targets;     ///< What the values should have been.
    const float* old_values;  ///< Read only where values are clipped.
};

/// Sums over samples.
struct PpoStats {
    double policy_loss = 0.0;
    double value_loss = 0.0;
    double entropy = 0.0;
    double approx_kl = 0.0;
    double clip_fraction = 0.0;

    void operator+=(const PpoStats& other) {
        policy_loss += other.policy_loss;
        value_loss += other.value_loss;
        entropy += other.entropy;
        approx_kl += other.approx_kl;
        clip_fraction += other.clip_fraction;
    }
};

/// Loss of one tile and its gradient. `heads` and `gradient` are [actions + values][kTile]. Sample
/// i of the tile is row samples[i] of the batch; lanes past `count` get a zero gradient. `weight` is one over
/// the minibatch's size.
inline PpoStats ppo_tile(const PpoSettings& settings, const PpoBatch& batch, const std::int64_t* samples,
                         int count, int actions, int values, float weight, const float* heads,
                         float* gradient) {
    PpoStats stats;
    for (int i = 0; i < kTile; ++i) {
        if (i >= count) {
            for (int a = 0; a < actions + values; ++a) gradient[a * kTile + i] = 0.0f;
            continue;
        }
        const std::int64_t row = samples[i];
        float* logp = gradient + i;  // overwritten by the gradient below
        log_softmax(heads + i, actions, logp);

        const std::int64_t action = batch.actions[row];
        const float advantage = batch.advantages[row];
        const float log_ratio = logp[action * kTile] - batch.old_logp[row];
        const float ratio = std::exp(log_ratio);
        const float clipped = std::clamp(ratio, 1.0f - settings.clip, 1.0f + settings.clip);
        float policy_loss, logp_gradient;
        if (settings.clipped) {
            policy_loss = -std::min(ratio * advantage, clipped * advantage);
            logp_gradient = ratio * advantage <= clipped * advantage ? -weight * ratio * advantage : 0.0f;
        } else {
            policy_loss = -logp[action * kTile] * advantage;
            logp_gradient = -weight * advantage;
        }

        float entropy = 0.0f;
        for (int a = 0; a < actions; ++a) entropy -= std::exp(logp[a * kTile]) * logp[a * kTile];
        for (int a = 0; a < actions; ++a) {
            const float lp = logp[a * kTile];
            const float p = std::exp(lp);
            const float chosen = a == action ? 1.0f : 0.0f;
            gradient[a * kTile + i] =
                logp_gradient * (chosen - p) + weight * settings.entropy_coefficient * p * (lp + entropy);
        }

        const std::int64_t head = actions + (batch.stages ? batch.stages[row] : 0);
        for (int a = actions; a < actions + values; ++a) gradient[a * kTile + i] = 0.0f;
        const float value = heads[head * kTile + i];
        const float error = value - batch.targets[row];
        float loss = error * error;
        float value_gradient = error;
        if (settings.value_clip > 0.0f) {
            const float old = batch.old_values[row];
            const float move = std::clamp(value - old, -settings.value_clip, settings.value_clip);
            const float clipped_error = old + move - batch.targets[row];
            if (move != value - old && clipped_error * clipped_error > loss) {
                loss = clipped_error * clipped_error;
                value_gradient = 0.0f;
            }
        }
        gradient[head * kTile + i] = weight * settings.value_coefficient * value_gradient;

        stats.policy_loss += static_cast<double>(policy_loss);
        stats.value_loss += 0.5 * static_cast<double>(loss);
        stats.entropy += static_cast<double>(entropy);
        stats.approx_kl += static_cast<double>(ratio - 1.0f - log_ratio);
        stats.clip_fraction += std::fabs(ratio - 1.0f) > settings.clip ? 1.0 : 0.0;
    }
    return stats;
}

}  // namespace warpzone::net
