"""How much of its speed a vector of environments keeps while other programs use the cores.

python bench/busy.py [--num-envs 64] [--threads 0] [--rounds 20] [--seconds 1] [--out FILE.json]

Each round times the vector alone, beside one process that only counts, and beside two, one after another; what counts
is the share of the speed alone within the round. Given are its median and its 95 % interval (by resampling the rounds).
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import tyro
from rich.console import Console

from medians import median_interval
from warpzone.cli.bench_env import vector_side
from warpzone.cli.bench_results import rate, write_json
from warpzone.envs.config import cores, thread_count

BUSY = (1, 2)


@dataclass(frozen=True)
class Config:
    num_envs: int = 64
    """Environments of the vector."""
    threads: int = 0
    """Threads of the vector (0 = one per core)."""
    rounds: int = 20
    """Measurements of each kind."""
    seconds: float = 1.0
    """Seconds of each measurement."""
    out: Path | None = None
    """JSON file for the results."""


@contextmanager
def counting(processes: int) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Processes that only count, stopped until they are told to go on."""
    started = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(processes)]
    try:
        for one in started:
            one.send_signal(signal.SIGSTOP)
        yield started
    finally:
        for one in started:
            one.kill()
            one.wait()


def main(config: Config) -> int:
    threads = thread_count(config.threads, config.num_envs)
    play = vector_side(config.num_envs, threads)
    rate(play, 2.0)  # the translator's first encounter with the game is not what is measured
    shares: dict[int, list[float]] = {busy: [] for busy in BUSY}
    alone = []
    with counting(max(BUSY)) as others:
        for number in range(config.rounds):
            alone.append(rate(play, config.seconds))
            for busy in BUSY:
                for one in others[:busy]:
                    one.send_signal(signal.SIGCONT)
                shares[busy].append(rate(play, config.seconds) / alone[-1])
                for one in others:
                    one.send_signal(signal.SIGSTOP)
            print(
                {busy: round(values[-1], 2) for busy, values in shares.items()},
                f"round {number + 1}",
                flush=True,
            )
    results = {str(busy): median_interval(values) for busy, values in shares.items()}
    for name, share in results.items():
        print(f"beside {name}: {share}")
    report = {"threads": threads, "cores": cores(), "rounds": config.rounds, "alone_frames_per_s": alone}
    write_json(config.out, "busy.json", {**report, "share_of_speed_alone": results}, Console())
    return 0


if __name__ == "__main__":
    sys.exit(main(tyro.cli(Config, description=__doc__)))
