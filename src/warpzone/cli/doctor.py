"""`warpzone doctor`: checks the installation, and proves that environments start, step and close."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass

from rich.console import Console

from warpzone.cli.doctor_checks import check_installation, print_checks
from warpzone.cli.doctor_cluster import ClusterConfig, check_cluster
from warpzone.cli.doctor_trials import REPORT, TrialsConfig, print_report, read_report, run_trials, summarise
from warpzone.cli.flags import parse
from warpzone.errors import ConfigError

USAGE = """usage: warpzone doctor [sync|async|report|cluster] [-h] ...

Without a subcommand: check the installation.
  sync    stability trials with all environments in one process
  async   stability trials with a worker process for each environment (nes-py)
  report  totals, success rates and times of all trials so far
  cluster versions, engine, ROM, round trip and bandwidth of every node of a Ray cluster"""


@dataclass(frozen=True)
class ReportConfig:
    """Summarise the trials so far."""

    report: str = REPORT
    """File of trial results (JSON lines)."""


SETTINGS = {"sync": TrialsConfig, "async": TrialsConfig, "report": ReportConfig, "cluster": ClusterConfig}


def run(argv: list[str]) -> int:
    """Parse and run; 0 if all is well, 1 if something is not."""
    if argv and argv[0] in ("-h", "--help"):
        print(USAGE)
        return 0
    # Results are for files and pipes as often as for a terminal: no wrapping at its width.
    console = Console(width=None if sys.stdout.isatty() else 160, soft_wrap=not sys.stdout.isatty())
    if not argv:
        return print_checks(check_installation(), console)
    word, rest = argv[0], argv[1:]
    if word == "report":
        config = parse(ReportConfig(), rest, "warpzone doctor report")
        print_report(summarise(read_report(config.report)), console)
        return 0
    if word == "cluster":
        return print_checks(check_cluster(parse(ClusterConfig(), rest, "warpzone doctor cluster")), console)
    if word not in ("sync", "async"):
        raise ConfigError(f"warpzone doctor knows sync, async, report and cluster, not {word!r}.")
    trials = parse(TrialsConfig(), rest, f"warpzone doctor {word}")
    if word == "async" and trials.backend == "native":
        raise ConfigError("The native engine has threads, not workers: use doctor sync --backend native.")
    if trials.dry_run:
        print(json.dumps({"mode": word, **asdict(trials)}, indent=2))
        return 0
    failures = run_trials(word, trials, console)
    console.print(f"{trials.trials - failures} of {trials.trials} trials succeeded, see {trials.report}")
    return 1 if failures else 0
