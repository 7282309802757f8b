"""The fields of `metrics.jsonl`. Every record has all of them, null where one does not apply; see docs/metrics.md."""

from __future__ import annotations

from typing import Literal

Kind = Literal["float", "int", "bool", "object"]

_GROUPS = {
    "progress": "timestamp update global_step",
    "loss": "loss_total loss_policy loss_value loss_per entropy learning_rate grad_norm",
    "return": "avg_return recent_return_p50 recent_return_p90 recent_return_p99",
    "speed": "env_steps_per_sec updates_per_sec update_time rollout_time learn_time model_compiled",
    "replay": (
        "replay_size replay_capacity replay_fill_rate replay_last_unique_ratio replay_avg_unique_ratio "
        "replay_push_total replay_priority_mean replay_priority_p50 replay_priority_p90 replay_priority_p99 "
        "replay_sample_time_ms"
    ),
    "gpu": "gpu_util_last gpu_util_mean_window gpu_mem_used_mb",
    "env": (
        "env_mean_x_pos env_max_x_pos env_distance_delta_sum env_progress_dx env_positive_dx_ratio "
        "env_shaping_raw_sum env_shaping_scaled_sum env_shaping_last_dx env_shaping_last_raw "
        "env_shaping_last_scaled env_shaping_last_scale env_shaping_parse_fail stagnation_envs"
    ),
    "clear": "clear_rate clear_rate_mean clear_rate_noisy time_to_first_flag",
    "learning": (
        "policy_lag collect_share learn_share approx_kl clip_fraction explained_variance loss_teacher "
        "loss_augment loss_imitation"
    ),
    "curriculum": "stage_share trail_share trail_cleared arrival_cleared",
}
"""Group (also the TensorBoard section) -> its fields, in the order of a record."""
_NOT_FLOATS: dict[Kind, str] = {
    "int": (
        "update global_step replay_size replay_capacity replay_push_total env_shaping_parse_fail stagnation_envs"
    ),
    "bool": "model_compiled",
    "object": "clear_rate stage_share trail_cleared arrival_cleared",
}

GROUP_OF: dict[str, str] = {name: group for group, names in _GROUPS.items() for name in names.split()}
FIELDS: tuple[str, ...] = tuple(GROUP_OF)
KINDS: dict[str, Kind] = dict.fromkeys(FIELDS, "float")
KINDS |= {name: kind for kind, names in _NOT_FLOATS.items() for name in names.split()}
