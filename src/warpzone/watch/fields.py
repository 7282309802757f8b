"""The fields of `metrics.jsonl`. Every record has all of them, null where one does not apply; see docs/metrics.md."""

from __future__ import annotations

from typing import Literal

Kind = Literal["float", "int", "bool", "object"]

# Group of fields (also the TensorBoard section) -> field -> kind of value.
_GROUPS: dict[str, dict[str, Kind]] = {
    "progress": {"timestamp": "float", "update": "int", "global_step": "int"},
    "loss": {
        "loss_total": "float",
        "loss_policy": "float",
        "loss_value": "float",
        "loss_per": "float",
        "entropy": "float",
        "learning_rate": "float",
        "grad_norm": "float",
    },
    "return": {
        "avg_return": "float",
        "recent_return_p50": "float",
        "recent_return_p90": "float",
        "recent_return_p99": "float",
    },
    "speed": {
        "env_steps_per_sec": "float",
        "updates_per_sec": "float",
        "update_time": "float",
        "rollout_time": "float",
        "learn_time": "float",
        "model_compiled": "bool",
    },
    "replay": {
        "replay_size": "int",
        "replay_capacity": "int",
        "replay_fill_rate": "float",
        "replay_last_unique_ratio": "float",
        "replay_avg_unique_ratio": "float",
        "replay_push_total": "int",
        "replay_priority_mean": "float",
        "replay_priority_p50": "float",
        "replay_priority_p90": "float",
        "replay_priority_p99": "float",
        "replay_sample_time_ms": "float",
    },
    "gpu": {"gpu_util_last": "float", "gpu_util_mean_window": "float", "gpu_mem_used_mb": "float"},
    "env": {
        "env_mean_x_pos": "float",
        "env_max_x_pos": "float",
        "env_distance_delta_sum": "float",
        "env_progress_dx": "float",
        "env_positive_dx_ratio": "float",
        "env_shaping_raw_sum": "float",
        "env_shaping_scaled_sum": "float",
        "env_shaping_last_dx": "float",
        "env_shaping_last_raw": "float",
        "env_shaping_last_scaled": "float",
        "env_shaping_last_scale": "float",
        "env_shaping_parse_fail": "int",
        "stagnation_envs": "int",
    },
    "clear": {"clear_rate": "object", "clear_rate_mean": "float", "time_to_first_flag": "float"},
    "learning": {
        "policy_lag": "float",
        "collect_share": "float",
        "learn_share": "float",
        "approx_kl": "float",
        "clip_fraction": "float",
        "explained_variance": "float",
        "loss_teacher": "float",
    },
    "curriculum": {"stage_share": "object", "trail_share": "float", "trail_cleared": "object"},
}

KINDS: dict[str, Kind] = {name: kind for fields in _GROUPS.values() for name, kind in fields.items()}
FIELDS: tuple[str, ...] = tuple(KINDS)
GROUP_OF: dict[str, str] = {name: group for group, fields in _GROUPS.items() for name in fields}
