"""A run that was stopped and resumed is the run that was never stopped, bit for bit."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from warpzone.api import resolve
from warpzone.checkpoints.saving import load_checkpoint, save_checkpoint
from warpzone.cli.train import settings
from warpzone.starts.trails import Trail, save_trail

from .small_runs import Quiet, differences, lasting_state, measured, saved_state, small_run

REPLAY = ("--per", "--per-checkpoint", "--per-capacity", "512", "--per-batch-size", "32")
KINDS: dict[str, tuple[str, ...]] = {
    "native": ("--learner", "native"),
    "torch": ("--learner", "torch"),
    "torch with replay": ("--learner", "torch", *REPLAY),
    "replay sampled every other update": ("--learner", "torch", *REPLAY, "--per-sample-interval", "2"),
    "gru": ("--recurrent-type", "gru"),
    "gru with replay": ("--recurrent-type", "gru", *REPLAY),
    "lstm": ("--recurrent-type", "lstm"),
    "transformer": ("--recurrent-type", "transformer"),
    "double-buffered": ("--double-buffer",),
    "normalised, several stages": (
        *("--stages", "1-1,1-2,4-1", "--normalise-values", "--normalise-rewards", "--curriculum", "progress"),
        *("--adaptive-entropy", "--adaptive-lr", "--adaptive-window", "2", "--adaptive-cooldown", "1"),
    ),
    "annealed rewards, sticky buttons": (
        *("--reward-scale-final", "0.2", "--reward-scale-anneal-steps", "500", "--sticky", "0.25"),
        *("--reward-score-weight", "0.1", "--max-pool", "--step-limit", "20"),
    ),
}


@pytest.fixture(scope="module")
def trails(trail: Trail, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a trail of 1-1."""
    return save_trail(trail, tmp_path_factory.mktemp("trails")).parent


@pytest.mark.parametrize("buffers", ["--no-double-buffer", "--double-buffer"])
def test_stopping_while_episodes_begin_on_a_trail_changes_nothing(
    buffers: str, trails: Path, tmp_path: Path
) -> None:
    flags = (
        *(
            "--deterministic",
            "--step-limit",
            "20",
            "--rollout-steps",
            "32",
            "--action-type",
            "complex",
            buffers,
        ),
        *("--trails", str(trails), "--trail-share", "0.9", "--trail-patience", "1"),
    )
    small_run(tmp_path, "--run-name", "whole", "--total-updates", "6", *flags)
    small_run(tmp_path, "--run-name", "halves", "--total-updates", "3", *flags)
    halfway = saved_state(tmp_path / "halves")["trail_starts"]
    assert halfway["queued"]
    assert halfway["began"]
    small_run(tmp_path, "--run-name", "halves", "--total-updates", "6", *flags)
    assert measured(tmp_path / "halves") == measured(tmp_path / "whole")
    assert differences(lasting_state(tmp_path / "halves"), lasting_state(tmp_path / "whole")) == []


@pytest.mark.parametrize("kind", KINDS)
def test_stopping_and_resuming_changes_nothing(kind: str, tmp_path: Path) -> None:
    # A record of every second update: what was summed up before the stop must be in the record after it.
    flags = ("--deterministic", "--step-limit", "30", "--log-interval", "2", *KINDS[kind])
    small_run(tmp_path, "--run-name", "whole", "--total-updates", "6", *flags)
    for updates in ("3", "6"):
        halves = small_run(tmp_path, "--run-name", "halves", "--total-updates", updates, *flags)
        assert halves.progress.update == int(updates)

    whole, resumed = tmp_path / "whole", tmp_path / "halves"
    assert [record["update"] for record in measured(whole)] == [2, 4, 6]
    # The stop itself leaves a record of the update since the last one, which takes nothing from the next.
    at_stop = [record for record in measured(resumed) if record["update"] == 3]
    assert len(at_stop) == 1
    assert [record for record in measured(resumed) if record not in at_stop] == measured(whole)
    assert differences(lasting_state(resumed), lasting_state(whole)) == []


@pytest.mark.parametrize("learner", ["native", "torch"])
def test_the_same_seed_gives_the_same_run_twice_and_another_seed_another(
    learner: str, tmp_path: Path
) -> None:
    flags = ("--deterministic", "--total-updates", "4", "--learner", learner, "--step-limit", "30")
    for name, seed in (("a", "5"), ("b", "5"), ("c", "6")):
        small_run(tmp_path, "--run-name", name, "--seed", seed, *flags)
    assert measured(tmp_path / "a") == measured(tmp_path / "b")
    assert differences(lasting_state(tmp_path / "a"), lasting_state(tmp_path / "b")) == []
    assert measured(tmp_path / "a") != measured(tmp_path / "c")


def test_without_the_consoles_a_run_goes_on_from_new_episodes(tmp_path: Path) -> None:
    flags = ("--run-name", "a", "--no-checkpoint-envs")
    small_run(tmp_path, *flags, "--total-updates", "2")
    display = Quiet()
    outcome = small_run(tmp_path, *flags, "--total-updates", "4", display=display)
    assert any("episodes start over" in line for line in display.lines)
    assert outcome.progress.update == 4
    assert [record["update"] for record in measured(tmp_path / "a")] == [1, 2, 3, 4]


def test_more_environments_than_before_keep_what_was_learned(tmp_path: Path) -> None:
    first = small_run(tmp_path, "--total-updates", "2", "--normalise-rewards")
    second = small_run(tmp_path, "--total-updates", "3", "--num-envs", "12")
    assert second.progress.global_step == first.progress.global_step + 12 * 16


def test_an_overlapped_run_resumes_with_the_weights_it_had(tmp_path: Path) -> None:
    flags = ("--overlap-collect", "--algo", "appo", "--num-envs", "8")
    small_run(tmp_path, "--total-updates", "3", *flags)
    display = Quiet()
    small_run(tmp_path, "--total-updates", "6", *flags, display=display)
    assert [record["update"] for record in display.records] == [4, 5, 6]
    # Actions of weights from before the resume would lag by as many updates as the run is old.
    assert all(0 <= record["policy_lag"] <= 1 for record in display.records)


def test_a_checkpoint_of_a_gpu_goes_on_on_a_cpu(tmp_path: Path) -> None:
    first = small_run(tmp_path, "--run-name", "a", "--total-updates", "2", "--no-checkpoint-envs")
    saved = load_checkpoint(tmp_path / "a" / "checkpoints" / "latest.pt")
    # The state of CUDA's generator is 16 bytes: a seed and an offset.
    saved.state["learner"]["generator"] = torch.zeros(16, dtype=torch.uint8)
    moved = save_checkpoint(tmp_path, "moved", saved.state, saved.meta)
    display = Quiet()
    outcome = small_run(
        tmp_path, "--run-name", "b", "--total-updates", "4", "--resume", str(moved), display=display
    )
    assert any("another kind of device" in line for line in display.lines)
    assert first.progress.update == 2
    assert outcome.progress.update == 4
    assert [record["update"] for record in display.records] == [3, 4]


def test_consoles_of_another_version_of_the_engine_are_left_behind(tmp_path: Path) -> None:
    small_run(tmp_path, "--run-name", "a", "--total-updates", "2")
    saved = load_checkpoint(tmp_path / "a" / "checkpoints" / "latest.pt")
    for one in saved.state["envs"]:
        # The bytes behind the four of the name are the version.
        one["consoles"] = [bytes(c[:4]) + b"\x01\0\0\0" + bytes(c[8:]) for c in one["consoles"]]
    moved = save_checkpoint(tmp_path, "moved", saved.state, saved.meta)
    display = Quiet()
    outcome = small_run(
        tmp_path, "--run-name", "b", "--total-updates", "3", "--resume", str(moved), display=display
    )
    assert any("format version 1" in line for line in display.lines)
    assert any("episodes start over" in line for line in display.lines)
    assert outcome.progress.update == 3


@pytest.mark.parametrize("envs", ["8", "16"])
def test_a_checkpoint_without_a_count_of_decisions_resumes_at_its_place_on_the_schedule(
    envs: str, tmp_path: Path
) -> None:
    flags = ("--anneal-updates", "8", "--lr-schedule", "linear", "--learning-rate", "1e-3")
    small_run(tmp_path, "--run-name", "a", "--total-updates", "4", "--no-checkpoint-envs", *flags)
    saved = load_checkpoint(tmp_path / "a" / "checkpoints" / "latest.pt")
    del saved.state["learner"]["decisions"], saved.state["learner"]["interval"]
    moved = save_checkpoint(tmp_path, "moved", saved.state, saved.meta)
    display = Quiet()
    small_run(
        tmp_path, "--run-name", "b", "--total-updates", "5", "--resume", str(moved), "--num-envs", envs,
        "--anneal-steps", str(8 * 128), *flags[2:], display=display,
    )  # fmt: skip
    # After 4 x 128 of 8 x 128 decisions; the last update has the final rate, a tenth.
    done, last = 4 * 128, 8 * 128 - 16 * int(envs)
    assert display.records[0]["learning_rate"] == pytest.approx(1e-3 * (1 - 0.9 * done / last))


def test_settings_of_an_older_run_are_annealed_in_decisions(tmp_path: Path) -> None:
    small_run(tmp_path, "--run-name", "a", "--total-updates", "1", "--anneal-updates", "9")
    config_file = tmp_path / "a" / "config.json"
    config = json.loads(config_file.read_text())
    assert (config["learn"]["anneal_steps"], config["learn"]["anneal_updates"]) == (9 * 8 * 16, 0)
    config["learn"]["anneal_updates"] = 600
    del config["learn"]["anneal_steps"]
    config_file.write_text(json.dumps(config))
    flags = ["--runs-dir", str(tmp_path), "--run-name", "a"]

    def annealed(*more: str) -> int:
        return settings([*flags, *more], {}).learn.anneal_steps

    assert annealed() == annealed("--num-envs", "16") == 600 * 8 * 16
    assert annealed("--anneal-steps", "5000") == 5000
    assert annealed("--anneal-updates", "10", "--num-envs", "16") == 10 * 16 * 16
    assert resolve({"anneal_updates": 3, "num_envs": 32, "rollout_steps": 8}, "cpu").learn.anneal_steps == 768
