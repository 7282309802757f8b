"""Does it play, or has it memorised? Trains on N generated levels and tests where the agent has never been.

python bench/generalisation.py [--points 16 64 256 1024 endless] [--steps 10000000] [--seeds 2] [--dry-run]

For each N and seed: `warpzone train --levels N`, then `warpzone eval` on unseen seeds of the same difficulty, on the 32
stages of the game and on the Lost Levels, sampled and with sticky actions. Baselines: `originals` trains on the 32
stages alone, with the settings of the others, and the file of an agent is only tested. So is the folder of a run that
was trained elsewhere. Points that are in the file already are not measured again.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tyro
from rich.console import Console

from warpzone.cli.bench_results import write_json
from warpzone.cli.train import settings
from warpzone.master.recipes import words as flags
from warpzone.run.presets import LEVELS, LEVELS_NOISE
from warpzone.watch.metrics import OUTCOME_FILE, read_metrics

UNSEEN_FIRST = 1 << 41
"""First seed of the tests; no run trains on seeds from there on."""
ORIGINALS, AGENT = "originals", "agents/thirty-two.safetensors"
KEPT = ("stage", "episodes", "clears", "clear_rate", "mean_x")


@dataclass(frozen=True)
class Config:
    points: tuple[str, ...] = ("16", "64", "256", "1024", "endless", ORIGINALS, AGENT)
    """Numbers of training levels, endless, originals for the 32 stages, an agent's file or a run's folder."""
    steps: int = 10_000_000
    """Decisions of each training."""
    seeds: int = 2
    """Trainings of each point."""
    difficulty: float = 0.3
    """Difficulty of the levels."""
    unseen: int = 200
    """Unseen levels to test on."""
    episodes: int = 400
    """Episodes on the unseen levels, and at least 5 on each stage."""
    flags: str = "--preset gpu --encoder nature"
    """Further flags of `warpzone train`."""
    label: str = ""
    """What those flags try, for the table: with it, a point is not the benchmark's own."""
    device: str = "cpu"
    """Device of the tests: cpu or cuda."""
    runs_dir: Path = Path("runs/generalisation")
    """Folder of the runs."""
    out: Path = Path("docs/data/generalisation.json")
    """File of the results."""
    dry_run: bool = False
    """Print the commands and exit."""


def is_agent(point: str) -> bool:
    return point.endswith(".safetensors")


def is_run(point: str) -> bool:
    return (Path(point) / "config.json").exists()


def folder_of(config: Config, point: str, seed: int) -> Path:
    return Path(point) if is_run(point) else config.runs_dir / run_name(config, point, seed)


def run_name(config: Config, point: str, seed: int) -> str:
    return "-".join([Path(point).stem, *config.label.split(), str(seed)])


def name_of(config: Config, point: str) -> str:
    """The point in the table."""
    return f"{point}, {config.label}" if config.label else point


def training(config: Config, point: str, seed: int) -> list[str]:
    """The command that trains a point."""
    what = ["--levels", point, "--difficulty", f"{config.difficulty:g}"]
    if point == ORIGINALS:
        same = {name.replace("_", "-"): value for name, (_, value) in (LEVELS | LEVELS_NOISE).items()}
        what = ["--stages", "all", "--trails", "", *flags({**same, "anneal-steps": config.steps})]
    else:
        what += ["--anneal-steps", str(config.steps)]
    return [
        "train", *what, "--seed", str(seed), "--total-steps", str(config.steps), "--until-clear-rate", "0",
        "--time-limit", "0", "--no-record-video", "--run-name", run_name(config, point, seed),
        "--runs-dir", str(config.runs_dir), *shlex.split(config.flags),
    ]  # fmt: skip


def tests(config: Config, point: str, seed: int) -> dict[str, list[str]]:
    """The commands that test a point, by what they test."""
    run = folder_of(config, point, seed)
    shared = [
        "--checkpoint",
        point if is_agent(point) else str(run),
        "--mode",
        "sampled,sticky",
        "--device",
        config.device,
    ]
    unseen = f"{UNSEEN_FIRST}-{UNSEEN_FIRST + config.unseen - 1}"
    each = str(max(5, config.episodes // 32))
    return {
        "unseen": ["eval", *shared, "--levels", unseen, "--difficulty", f"{config.difficulty:g}", "--episodes",
                   str(config.episodes), "--out", str(run / "eval-unseen.json")],
        "originals": ["eval", *shared, "--stages", "all", "--episodes", each, "--out", str(run / "eval-stages.json")],
        "lost_levels": ["eval", *shared, "--lost-levels", "--episodes", each, "--out", str(run / "eval-lost.json")],
    }  # fmt: skip


def trained(run: Path) -> dict[str, Any]:
    """What a run was trained on, and with which flags beside those that every training here has."""
    saved = json.loads((run / "config.json").read_text())
    stage, seed, encoder = saved["stage"], saved["run"]["seed"], saved["model"]["encoder"]
    words = [
        "--preset",
        saved["run"]["preset"],
        "--levels",
        stage["levels"],
        "--difficulty",
        str(stage["difficulty"]),
    ]
    usual = json.loads(json.dumps(settings(words, {}).as_dict()))
    changed: dict[str, Any] = {}
    for group in ("view", "reward", "model", "learn", "collect"):
        for name, value in saved[group].items():
            if value != usual[group][name]:
                changed[name.replace("_", "-")] = value
    point = stage["levels"]
    if encoder != usual["model"]["encoder"]:
        point += f", {encoder} network"
    elif changed.get("global-pool") is False:
        point += ", without pooling"
    return {
        "point": point,
        "seed": seed,
        "train": f"warpzone train {shlex.join([*words, *flags(changed), '--seed', str(seed)])}",
        "curve": curve(run),
    }  # fmt: skip


def is_trained(run: Path, steps: int) -> bool:
    """Whether a training is over, here or on another machine."""
    outcome = run / OUTCOME_FILE
    return outcome.exists() and json.loads(outcome.read_text())["global_step"] >= steps


def is_newer(result: Path, checkpoint: Path) -> bool:
    """Whether a test is of these very weights, and need not be repeated."""
    both = result.exists() and checkpoint.exists()
    return both and result.stat().st_mtime > checkpoint.stat().st_mtime


def called(command: list[str], console: Console) -> None:
    """Run a subcommand of warpzone; its failure is ours."""
    console.print(f"warpzone {shlex.join(command)}", markup=False, highlight=False, soft_wrap=True)
    subprocess.run([sys.executable, "-m", "warpzone.cli.main", *command], check=True)


def curve(run: Path) -> list[dict[str, Any]]:
    """Clear rates of the last 100 episodes during the training, at most 50 points."""
    records = [r for r in read_metrics(run) if r.get("clear_rate")]
    kept = records[:: max(1, len(records) // 50)]
    return [{"global_step": r["global_step"], "clear_rate": r["clear_rate"]} for r in kept]


def measured(config: Config, point: str, seed: int, console: Console) -> dict[str, Any]:
    """Train and test one point."""
    found: dict[str, Any] = {"point": name_of(config, point), "seed": seed}
    run = folder_of(config, point, seed)
    if is_agent(point):
        run.mkdir(parents=True, exist_ok=True)
    elif is_run(point):
        found |= trained(run)
    else:
        train = training(config, point, seed)
        if not is_trained(run, config.steps):
            called(train, console)
        found |= {"train": f"warpzone {shlex.join(train)}", "curve": curve(run)}
    for name, command in tests(config, point, seed).items():
        if not is_newer(Path(command[-1]), run / "checkpoints" / "best.pt"):
            called(command, console)
        document = json.loads(Path(command[-1]).read_text())
        results, found["decisions"] = document["results"], document["global_step"]
        command[command.index("--device") + 1] = document["device"]
        found[name] = {
            "command": f"warpzone {shlex.join(command)}",
            "hardware": document["hardware"],
            "results": {
                mode: [{key: row[key] for key in KEPT} for row in rows]
                for mode, rows in results.items()
            },
        }  # fmt: skip
    return found


def main() -> None:
    config, console = tyro.cli(Config), Console()
    kept = json.loads(config.out.read_text())["points"] if config.out.exists() else []
    for point in config.points:
        for seed in range(1 if is_agent(point) or is_run(point) else config.seeds):
            if any(old["point"] == name_of(config, point) and old["seed"] == seed for old in kept):
                continue
            if config.dry_run:
                before = [] if is_agent(point) or is_run(point) else [training(config, point, seed)]
                for command in (*before, *tests(config, point, seed).values()):
                    print(f"warpzone {shlex.join(command)}")
                continue
            kept.append(measured(config, point, seed, console))
            config.out.parent.mkdir(parents=True, exist_ok=True)
            write_json(config.out, "generalisation.json", {"points": kept}, console)


if __name__ == "__main__":
    main()
