"""Every record has every field; the tables hold the same numbers."""

from __future__ import annotations

import csv
import io
import json
import re
import sys
import threading
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from warpzone.errors import ConfigError
from warpzone.watch.episodes import EpisodeLog
from warpzone.watch.fields import FIELDS, KINDS
from warpzone.watch.metrics import MetricsWriter, complete_record, read_metrics
from warpzone.watch.tables import metrics_table, write_csv, write_parquet

# The fields that users of the seed system know, in their order, and those we add.
CONTRACT = """
timestamp update global_step loss_total loss_policy loss_value loss_per entropy learning_rate grad_norm
avg_return recent_return_p50 recent_return_p90 recent_return_p99
env_steps_per_sec updates_per_sec update_time rollout_time learn_time model_compiled
replay_size replay_capacity replay_fill_rate replay_last_unique_ratio replay_avg_unique_ratio
replay_push_total replay_priority_mean replay_priority_p50 replay_priority_p90 replay_priority_p99
replay_sample_time_ms gpu_util_last gpu_util_mean_window gpu_mem_used_mb
env_mean_x_pos env_max_x_pos env_distance_delta_sum env_progress_dx env_positive_dx_ratio
env_shaping_raw_sum env_shaping_scaled_sum env_shaping_last_dx env_shaping_last_raw
env_shaping_last_scaled env_shaping_last_scale env_shaping_parse_fail stagnation_envs
"""
ADDED = """
clear_rate clear_rate_mean clear_rate_noisy time_to_first_flag policy_lag collect_share learn_share
approx_kl clip_fraction explained_variance loss_teacher loss_augment loss_imitation stage_share trail_share
trail_cleared arrival_cleared
"""


def record(update: int, **values: Any) -> dict[str, Any]:
    return {"update": update, "global_step": update * 64, **values}


def test_the_field_list_is_the_contract() -> None:
    assert list(FIELDS) == CONTRACT.split() + ADDED.split()


def test_every_record_has_every_field(tmp_path: Path) -> None:
    writer = MetricsWriter(tmp_path)
    writer.write({"update": 1, "loss_total": float("nan"), "my_own": 3})
    writer.close()
    (written,) = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert list(written) == [*FIELDS, "my_own"]
    assert written["loss_total"] is None
    assert written["timestamp"] > 1e9


def test_latest_parquet_has_the_same_numbers_and_types(tmp_path: Path) -> None:
    writer = MetricsWriter(tmp_path)
    for update in (1, 2, 3):
        writer.write(record(update, clear_rate={"1-1": 0.5}, model_compiled=False, entropy=1, extra=0.25))
    writer.close()
    table = pq.read_table(tmp_path / "metrics" / "latest.parquet")
    assert set(FIELDS) < set(table.column_names)
    assert table["update"].to_pylist() == [1, 2, 3]
    assert table["clear_rate"].to_pylist()[0] == [("1-1", 0.5)]
    assert table["model_compiled"].to_pylist() == [False] * 3
    assert table["entropy"].to_pylist() == [1.0] * 3
    assert table["loss_per"].to_pylist() == [None] * 3
    assert table["extra"].to_pylist() == [0.25] * 3


def test_without_pyarrow_there_is_one_warning_and_no_parquet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    writer = MetricsWriter(tmp_path)
    writer.write(record(1))
    writer.close()
    assert capsys.readouterr().out.count("Parquet needs pyarrow") == 1
    assert not (tmp_path / "metrics" / "latest.parquet").exists()
    assert [r["update"] for r in read_metrics(tmp_path)] == [1]
    with pytest.raises(ConfigError, match=r"pip install 'warpzone\[train\]'"):
        write_parquet([record(1)], tmp_path / "x.parquet")


def test_a_resumed_run_goes_on_in_the_same_files(tmp_path: Path) -> None:
    for updates in ((1, 2, 3), (3, 4)):
        writer = MetricsWriter(tmp_path)
        for update in updates:
            writer.write(record(update))
        writer.close()
    assert [r["update"] for r in read_metrics(tmp_path)] == [1, 2, 3, 4]
    table = pq.read_table(tmp_path / "metrics" / "latest.parquet")
    assert table["update"].to_pylist() == [1, 2, 3, 4]


def test_sinks_see_the_completed_record_one_at_a_time(tmp_path: Path) -> None:
    seen: list[dict[str, Any]] = []
    writer = MetricsWriter(tmp_path, sinks=[seen.append])
    threads = [threading.Thread(target=writer.write, args=(record(n),)) for n in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    writer.close()
    assert sorted(r["update"] for r in seen) == list(range(20))
    assert all(list(r) == list(FIELDS) for r in seen)


def test_values_of_a_wrong_kind_are_null_in_tables() -> None:
    table = metrics_table([{"update": "three", "entropy": [1], "clear_rate": 4, "replay_size": 2**70}])
    assert [table[n].to_pylist() for n in ("update", "entropy", "clear_rate", "replay_size")] == [[None]] * 4


def test_csv_has_one_row_per_record() -> None:
    out = io.StringIO()
    write_csv([complete_record(record(1, clear_rate={"1-1": 1.0})), complete_record(record(2))], out)
    rows = list(csv.DictReader(io.StringIO(out.getvalue())))
    assert [row["update"] for row in rows] == ["1", "2"]
    assert json.loads(rows[0]["clear_rate"]) == {"1-1": 1.0}
    assert rows[1]["entropy"] == ""


def episode(stage: str = "1-1", value: float = 0.0, cleared: bool = False) -> dict[str, Any]:
    return {"stage": stage, "return": value, "length": 10, "x_max": 40, "cleared": cleared, "end": "death"}


def test_clear_rates_are_counted_per_stage_over_the_window(tmp_path: Path) -> None:
    log = EpisodeLog(tmp_path / "episodes.jsonl", window=4)
    outcomes = [False, False, True, True, True, False]
    for n, cleared in enumerate(outcomes):
        log.add([episode(cleared=cleared, value=n)], update=n, global_step=n, elapsed_s=n * 2.0)
    log.add([episode("1-2")], update=9, global_step=9, elapsed_s=99)
    summary = log.summary()
    assert summary["clear_rate"] == {"1-1": 0.75, "1-2": 0.0}
    assert log.clear_rates(min_episodes=2) == {"1-1": 0.75}
    assert summary["clear_rate_mean"] == 0.375
    assert summary["time_to_first_flag"] == 4.0
    assert summary["recent_return_p50"] == 3.5
    log.add([episode("1-2", cleared=True), episode("1-2")], update=10, global_step=10, elapsed_s=100)
    assert log.clear_rates() == {"1-1": 0.75, "1-2": 1 / 3}
    log.close()
    records = [json.loads(line) for line in (tmp_path / "episodes.jsonl").read_text().splitlines()]
    assert [record["episode"] for record in records] == list(range(1, 10))
    assert [record["cleared"] for record in records[-2:]] == [True, False]


def test_stages_that_are_not_played_any_more_are_forgotten(tmp_path: Path) -> None:
    log = EpisodeLog(tmp_path / "episodes.jsonl")
    for stage in ("1-1", "1-2"):
        record = {"stage": stage, "return": 1.0, "cleared": True, "start": "stage"}
        log.add([record], update=1, global_step=1, elapsed_s=1.0)
    log.forget_others(["1-2", "1-3"])
    assert log.clear_rates() == {"1-2": 1.0}
    log.close()


def test_generated_levels_have_a_longer_window(tmp_path: Path) -> None:
    log = EpisodeLog(tmp_path / "episodes.jsonl")
    for n in range(1200):
        for stage in ("1-1", "levels@0.3"):
            log.add([episode(stage, cleared=n < 600)], update=1, global_step=n, elapsed_s=1.0)
    resumed = EpisodeLog(tmp_path / "resumed.jsonl")
    resumed.load_state_dict(log.state_dict())
    assert resumed.clear_rates() == log.clear_rates() == {"1-1": 0.0, "levels@0.3": 0.4}


def test_episodes_with_noise_have_a_rate_of_their_own(tmp_path: Path) -> None:
    log = EpisodeLog(tmp_path / "episodes.jsonl")
    for noisy, cleared in ((False, True), (True, False), (True, True), (True, False), (True, False)):
        one = {**episode(cleared=cleared, value=5.0 - 9 * noisy), "noisy": noisy}
        log.add([one], update=1, global_step=1, elapsed_s=1.0)
    summary = log.summary()
    assert (summary["clear_rate"], summary["clear_rate_noisy"]) == ({"1-1": 1.0}, 0.25)
    assert summary["avg_return"] == 5.0
    resumed = EpisodeLog(tmp_path / "resumed.jsonl")
    resumed.load_state_dict(log.state_dict())
    assert resumed.summary() == summary


def test_no_episode_yet_is_null_not_an_error(tmp_path: Path) -> None:
    summary = EpisodeLog(tmp_path / "episodes.jsonl").summary()
    assert summary["avg_return"] is None
    assert summary["clear_rate"] == {}
    assert set(summary) <= set(FIELDS)


def test_episodes_from_snapshots_are_written_but_not_counted(tmp_path: Path) -> None:
    log = EpisodeLog(tmp_path / "episodes.jsonl")
    log.add([episode(value=2.0, cleared=False)], update=1, global_step=1, elapsed_s=1.0)
    counted = log.summary()
    late = {**episode(value=9.0, cleared=True), "start": "snapshot"}
    log.add([late], update=1, global_step=2, elapsed_s=2.0)
    assert log.summary() == counted
    log.close()
    assert len((tmp_path / "episodes.jsonl").read_text().splitlines()) == 2


def test_episode_windows_survive_a_resume(tmp_path: Path) -> None:
    first = EpisodeLog(tmp_path / "episodes.jsonl")
    first.add([episode(value=2.0, cleared=True)], update=1, global_step=1, elapsed_s=1.5)
    second = EpisodeLog(tmp_path / "episodes.jsonl")
    second.load_state_dict(first.state_dict())
    assert second.summary() == first.summary()


DOCS = Path(__file__).parents[2] / "docs" / "metrics.md"


def test_the_documentation_defines_exactly_the_fields_of_a_record() -> None:
    defined = re.findall(r"^\| `([a-z0-9_]+)` \| (\w+)", DOCS.read_text(), flags=re.MULTILINE)
    assert [name for name, _ in defined] == list(FIELDS)
    assert dict(defined) == KINDS


@pytest.mark.parametrize("number", range(6))
def test_the_jq_lines_of_the_documentation_work(tmp_path: Path, number: int) -> None:
    import shutil
    import subprocess

    if shutil.which("jq") is None:
        pytest.skip("jq is not installed")
    commands = re.findall(r"^(jq .+)$", DOCS.read_text(), flags=re.MULTILINE)
    assert len(commands) == 6
    run = tmp_path / "runs" / "demo"
    writer = MetricsWriter(run)
    episodes = EpisodeLog(run / "episodes.jsonl")
    for update in (1, 2):
        episodes.add([episode(cleared=update == 2)], update=update, global_step=1, elapsed_s=1.0)
        values = {"env_steps_per_sec": 9.5, "replay_fill_rate": 0.5, "collect_share": 0.5, "learn_share": 0.5}
        writer.write(record(update, **values, **episodes.summary()))
    writer.close()
    episodes.close()
    done = subprocess.run(
        commands[number], shell=True, cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() not in ("", "null")
