"""What `make compat` tries in one environment, run by the Python of that environment.

    python compat_trial.py write FOLDER            trains, resumes, and leaves a checkpoint
    python compat_trial.py read FOLDER OTHER...    resumes the checkpoints of other rows

Prints a JSON object: for every trial "yes" or what went wrong.
"""

from __future__ import annotations

import contextlib
import io
import json
import shutil
import sys
import traceback
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

from warpzone.cli.main import main
from warpzone.watch.metrics import read_metrics

SMALL = (
    *("train", "--preset", "cpu", "--device", "cpu", "--deterministic", "--until-clear-rate", "0"),
    *("--num-envs", "8", "--rollout-steps", "16", "--minibatch-size", "64", "--log-interval", "1"),
    *("--step-limit", "30", "--env-threads", "1", "--torch-threads", "1", "--no-record-video"),
)
RECURRENT = (
    *("--learner", "torch", "--recurrent-type", "gru"),
    *("--per", "--per-checkpoint", "--per-capacity", "512", "--per-batch-size", "32"),
)
HALF, WHOLE = 3, 5
LASTING = ("global_step", "loss_policy", "loss_value", "entropy", "approx_kl", "grad_norm", "env_mean_x_pos")
"""Metrics that show whether two runs computed the same."""


def warpzone(*argv: str) -> None:
    """Run a command; raises its output if it failed."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        code = main([*argv])
    if code:
        raise RuntimeError((said.getvalue().strip().splitlines() or [f"exit code {code}"])[-1])


def train(folder: Path, run: str, updates: int, *flags: str) -> None:
    warpzone(*SMALL, "--runs-dir", str(folder), "--run-name", run, "--total-updates", str(updates), *flags)


def outcome(run: Path) -> list[list[Any]]:
    """Metrics of the second half of a run."""
    return [[r[name] for name in LASTING] for r in read_metrics(run) if r["update"] > HALF]


def trains(folder: Path) -> None:
    train(folder, "whole", HALF)
    shutil.copytree(folder / "whole" / "checkpoints", folder / "left")


def resumes(folder: Path) -> None:
    train(folder, "whole", WHOLE)
    assert [r["update"] for r in read_metrics(folder / "whole")] == list(range(1, WHOLE + 1))


def recurrent_with_replay(folder: Path) -> None:
    for updates in (2, 3):
        train(folder, "gru", updates, *RECURRENT)
    assert read_metrics(folder / "gru")[-1]["replay_size"]


def nes_py(folder: Path) -> None:
    small = ("--num-envs", "2", "--rollout-steps", "4", "--minibatch-size", "8")
    train(folder, "nes_py", 1, "--backend", "nes-py", *small)


def gymnasium_api(folder: Path) -> None:
    import gymnasium
    from gymnasium.utils.env_checker import check_env

    env = gymnasium.make("warpzone/SuperMarioBros-v0")
    check_env(env.unwrapped, skip_render_check=True)
    env.close()
    envs = gymnasium.make_vec("warpzone/SuperMarioBros-v0", num_envs=3)
    envs.reset(seed=1)
    for _ in range(20):
        envs.step(envs.action_space.sample())
    envs.close()


def parquet(folder: Path) -> None:
    warpzone("export", str(folder / "whole"))
    assert (folder / "whole" / "metrics" / "latest.parquet").is_file()


WRITE: dict[str, Callable[[Path], None]] = {
    "trains": trains,
    "resumes": resumes,
    "GRU, replay": recurrent_with_replay,
    "nes-py backend": nes_py,
    "Gymnasium API": gymnasium_api,
    "Parquet": parquet,
}


def write(folder: Path) -> dict[str, str]:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return {name: attempt(trial, folder) for name, trial in WRITE.items()}


def read(folder: Path, others: list[Path]) -> dict[str, str]:
    """Resume from the half-way checkpoints of other rows; `same` if everything after is identical."""

    def go_on(other: Path) -> str:
        run = f"from_{other.name}"
        train(folder, run, WHOLE, "--resume", str(other / "left" / "latest.pt"))
        return "same" if outcome(folder / run) == outcome(other / "whole") else "yes"

    return {other.name: attempt(go_on, other) for other in others}


def attempt(trial: Callable[[Path], str | None], folder: Path) -> str:
    try:
        return trial(folder) or "yes"
    except Exception as error:
        traceback.print_exc()
        return f"{type(error).__name__}: {error}"


if __name__ == "__main__":
    what, where, *rest = sys.argv[1:]
    tried = write(Path(where)) if what == "write" else read(Path(where), [Path(other) for other in rest])
    names = ("torch", "gymnasium", "numpy", "nes-py", "gym-super-mario-bros")
    print(json.dumps({"versions": {name: version(name) for name in names}, "tried": tried}))
