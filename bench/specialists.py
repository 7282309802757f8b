"""One agent per stage, all with one setting: which stages it masters, and in what time. Made for a GPU.

    python bench/specialists.py --out specialists -- --preset gpu --gamma 0.97 --ground stood --action-type complex
    python bench/specialists.py --stages 1-1 1-4 --minutes 0.2 --out /tmp/few -- --preset cpu     # to see that it works

Everything after `--` is passed to `warpzone train`. A stage is trained until its last episodes and fresh ones clear at
`--until`, or until its time is up; then 100 fresh sampled episodes are played. Each result is written at once, so the
same command resumes where it stopped; with more minutes it continues the stages below the goal. The table is printed
and saved as Markdown beside the results.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import tyro

from warpzone.envs.stages import parse_stages
from warpzone.watch.metrics import read_metrics

WARPZONE = [sys.executable, "-m", "warpzone.cli.main"]
GOAL = 0.9


@dataclass(frozen=True)
class Config:
    out: Path
    """Folder for the runs, the results and the table."""
    stages: tuple[str, ...] = ("all",)
    """Stages, worlds or 'all'."""
    minutes: float = 3.0
    """Maximum training per stage, in minutes."""
    until: float = 0.95
    """Clear rate at which training stops."""
    parallel: int = 1
    """Stages trained at the same time."""
    episodes: int = 100
    """Fresh episodes to evaluate."""


def specialist(config: Config, stage: str, flags: list[str]) -> dict[str, Any]:
    """Train and evaluate one stage, unless that is already done."""
    result = config.out / f"{stage}.json"
    before_s = 0.0
    if result.exists():
        known: dict[str, Any] = json.loads(result.read_text())
        if known["clear_rate"] >= GOAL or known["training_s"] >= 60 * config.minutes - 5:
            return known
        before_s = known["wall_s"]
    name = f"stage-{stage}"
    limits = ["--until-clear-rate", str(config.until), "--time-limit", str(config.minutes)]
    quiet = ["--plain", "--no-record-video", "--no-enable-tensorboard", "--no-checkpoint-envs"]
    here = ["--runs-dir", str(config.out / "runs"), "--run-name", name]
    began = time.monotonic()
    said = _say(config, stage, ["train", *flags, *here, "--stages", stage, *limits, *quiet])
    took_s = time.monotonic() - began
    if said is not None:
        return {"stage": stage, "error": said}
    fresh = config.out / f"{stage}.eval.json"
    checkpoint = config.out / "runs" / name / "checkpoints" / "latest.pt"
    asked = ["--stages", stage, "--episodes", str(config.episodes), "--mode", "sampled", "--out", str(fresh)]
    said = _say(config, stage, ["eval", "--checkpoint", str(checkpoint), *asked])
    if said is not None:
        return {"stage": stage, "error": said}
    played = json.loads(fresh.read_text())["results"]["sampled"][0]
    last = read_metrics(config.out / "runs" / name)[-1]
    found = {
        "stage": stage,
        "clear_rate": played["clear_rate"],
        "mean_x": played["mean_x"],
        "ends": played["ends"],
        "decisions": last["global_step"],
        "training_s": last["elapsed_s"],
        "wall_s": before_s + took_s,
    }
    result.write_text(json.dumps(found, indent=2) + "\n")
    return found


def _say(config: Config, stage: str, command: list[str]) -> str | None:
    """Run a command; returns why it failed, if it did."""
    done = subprocess.run([*WARPZONE, *command], capture_output=True, text=True, check=False)
    (config.out / f"{stage}.{command[0]}.log").write_text(done.stdout + done.stderr)
    return None if done.returncode == 0 else (done.stderr.strip().splitlines() or ["failed"])[-1]


def table(rows: list[dict[str, Any]]) -> str:
    lines = ["| stage | cleared | mean x | decisions | seconds |", "|---|---|---|---|---|"]
    for row in rows:
        if "error" in row:
            lines.append(f"| {row['stage']} | {row['error']} | | | |")
            continue
        lines.append(
            f"| {row['stage']} | {100 * row['clear_rate']:.0f} % | {row['mean_x']:,.0f} | "
            f"{row['decisions'] / 1e6:.2f} M | {row['training_s']:.0f} |"
        )
    good = [row for row in rows if "error" not in row]
    if good:
        reached = sum(row["clear_rate"] >= GOAL for row in good)
        middle = median(row["training_s"] for row in good)
        lines += ["", f"{reached} of {len(rows)} stages at {GOAL:.0%} or more; median {middle:.0f} s."]
    return "\n".join(lines) + "\n"


def main(config: Config, flags: list[str]) -> int:
    config.out.mkdir(parents=True, exist_ok=True)
    stages = parse_stages(list(config.stages))
    rows: dict[str, dict[str, Any]] = {}

    def one(stage: str) -> None:
        rows[stage] = row = specialist(config, stage, flags)
        shown = row.get("error") or f"{row['clear_rate']:.0%} after {row['training_s']:.0f} s"
        print(f"[{len(rows)}/{len(stages)}] {stage}: {shown}", flush=True)
        (config.out / "table.md").write_text(table([rows[s] for s in stages if s in rows]))

    with ThreadPoolExecutor(config.parallel) as pool:
        list(pool.map(one, stages))
    print(table([rows[stage] for stage in stages]))
    return 1 if any("error" in row for row in rows.values()) else 0


if __name__ == "__main__":
    words = sys.argv[1:]
    at = words.index("--") if "--" in words else len(words)
    sys.exit(main(tyro.cli(Config, args=words[:at], description=__doc__), words[at + 1 :]))
