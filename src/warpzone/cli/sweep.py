"""`warpzone sweep`: search for better settings with Optuna."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from warpzone.cli.flags import parse
from warpzone.cli.settings import DryRun, RunsFolder
from warpzone.cli.train import settings
from warpzone.cluster.connection import connected
from warpzone.cluster.trials import run_trials
from warpzone.envs.config import cores
from warpzone.errors import ConfigError
from warpzone.run.config import TrainConfig
from warpzone.run.stopping import EXIT_OK
from warpzone.run.sweep import SPACE, Cut, Referee, drawn, parse_names, run_trial


@dataclass(frozen=True)
class Config(RunsFolder, DryRun):
    """Train briefly with many settings, prune those that clear less, and rank settings by importance.

    What follows `--` is for `warpzone train`: `warpzone sweep --trials 40 -- --stages 1-2 --total-updates 200`.
    """

    name: str = "sweep"
    """Name of the study; its runs' names start with it."""
    trials: int = 20
    """Number of trials to add."""
    search: str = ""
    """Settings to search, comma-separated; by default all that can be searched."""
    prune_every: int = 20
    """Updates between pruning decisions."""
    seed: int = 0
    """Random seed of the search."""
    plots: bool = True
    """Draw parameter importance and parallel coordinates at the end."""
    cluster: str = ""
    """Ray cluster to run trials on, many at once: local, auto or HEAD:PORT."""
    trial_cpus: int = 1
    """CPUs of each trial on a cluster."""
    trial_gpus: float = 0.0
    """GPUs of each trial on a cluster; fractions share one."""

    def __post_init__(self) -> None:
        if self.trials < 1 or self.prune_every < 1:
            raise ConfigError("--trials and --prune-every must be at least 1.")
        if self.trial_cpus < 1 or self.trial_gpus < 0:
            raise ConfigError("--trial-cpus must be at least 1, and --trial-gpus can't be negative.")


SETTINGS = {"": Config}


def run(argv: list[str]) -> int:
    own, rest = (argv[: argv.index("--")], argv[argv.index("--") + 1 :]) if "--" in argv else (argv, [])
    config = parse(Config(), own, "warpzone sweep")
    names = parse_names(config.search)
    where = ["--run-name", config.name, "--runs-dir", str(config.runs_dir)]
    base = settings(["--fresh", "--total-updates", "100", *rest, *where])
    if config.dry_run:
        space = {name: [SPACE[name].scale, *SPACE[name].values] for name in names}
        print(json.dumps({"study": config.name, "trials": config.trials, "search": space}, indent=2))
        return EXIT_OK
    try:
        import optuna
        from sqlalchemy.exc import SQLAlchemyError
    except ImportError:
        raise ConfigError("warpzone sweep needs Optuna: pip install 'warpzone[sweep]'.") from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    file = (config.runs_dir / f"{config.name}.db").resolve()
    storage, pruner = f"sqlite:///{file}", optuna.pruners.MedianPruner(n_startup_trials=4)
    try:
        config.runs_dir.mkdir(parents=True, exist_ok=True)
        study = optuna.create_study(
            study_name=config.name, storage=storage, direction="maximize", pruner=pruner, load_if_exists=True
        )
    except (OSError, SQLAlchemyError) as error:
        raise ConfigError(f"{file} can't be opened as a study: choose another --runs-dir.") from error
    # Another seed for the trials that are added, or they would be those of the first time.
    study.sampler = optuna.samplers.TPESampler(seed=config.seed + len(study.trials))
    console = Console()
    console.print(f"[train] study {config.name}: {len(study.trials)} trials so far", markup=False)
    if config.cluster:
        trials_on_cluster(config, study, storage, base, names, console)
    else:
        for _ in range(config.trials):
            one_trial(study, base, names, config.prune_every, console)
    console.print(best_table(study))
    if config.plots:
        for path in draw(study, config.runs_dir / f"{config.name}_plots"):
            console.print(f"[train] wrote {path}", markup=False, soft_wrap=True)
    return EXIT_OK


def trials_on_cluster(
    config: Config, study: Any, storage: str, base: TrainConfig, names: tuple[str, ...], console: Console
) -> None:
    """All trials, as many at once as the cluster carries. Each run's folder is on the node that trained it."""
    import optuna

    def told(trial: Any, values: dict[str, Any], score: float, was_cut: bool) -> None:
        if was_cut:
            study.tell(trial, state=optuna.trial.TrialState.PRUNED)
        else:
            study.tell(trial, score)
        say_verdict(trial, values, f"stopped at {score:.3f}" if was_cut else f"{score:.3f}", console)

    base = replace(base, run=replace(base.run, runs_dir=str(config.runs_dir.resolve())))
    with connected(config.cluster, local_cpus=max(cores(), config.trial_cpus)) as cluster:
        run_trials(
            cluster, study, storage, base, names, trials=config.trials, every=config.prune_every,
            cpus=config.trial_cpus, gpus=config.trial_gpus, told=told,
        )  # fmt: skip


def one_trial(study: Any, base: TrainConfig, names: tuple[str, ...], every: int, console: Console) -> None:
    """Ask for settings, train with them, tell the study how well that went."""
    import optuna

    trial = study.ask()
    values = drawn(trial, names)

    def report(score: float, update: int) -> bool:
        trial.report(score, update)
        return not trial.should_prune()

    referee = Referee(report, every)
    try:
        score, _ = run_trial(base, trial.number, values, referee)
        study.tell(trial, score)
        verdict = f"{score:.3f}"
    except Cut:
        study.tell(trial, state=optuna.trial.TrialState.PRUNED)
        verdict = f"stopped at {referee.score:.3f}"
    except BaseException:
        study.tell(trial, state=optuna.trial.TrialState.FAIL)
        raise
    say_verdict(trial, values, verdict, console)


def say_verdict(trial: Any, values: dict[str, Any], verdict: str, console: Console) -> None:
    console.print(f"[train] trial {trial.number}: {verdict} {_listed(values)}", markup=False, soft_wrap=True)
    sys.stdout.flush()


def best_table(study: Any) -> Table:
    finished = [t for t in study.trials if t.value is not None]
    best = sorted(finished, key=lambda t: -t.value)[:5]
    table = Table("trial", "score", "settings", title=f"{study.study_name}: the best of {len(study.trials)}")
    for trial in best:
        table.add_row(str(trial.number), f"{trial.value:.3f}", _listed(trial.params))
    return table


def draw(study: Any, folder: Path) -> list[Path]:
    """Importance of the settings and parallel coordinates as PNG; none with fewer than two finished trials."""
    import warnings

    import matplotlib

    matplotlib.use("agg")
    import optuna.visualization.matplotlib as plots

    if sum(trial.value is not None for trial in study.trials) < 2:
        return []
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    kinds: dict[str, Any] = {
        "importance": plots.plot_param_importances,
        "parallel": plots.plot_parallel_coordinate,
    }
    for name, plot in kinds.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                figure = plot(study).get_figure()
            except (RuntimeError, ValueError, ImportError):
                # All scores alike, or no scikit-learn: then there is no importance to show.
                continue
        path = folder / f"{name}.png"
        figure.savefig(path, dpi=110, bbox_inches="tight")
        written.append(path)
    return written


def _listed(values: dict[str, Any]) -> str:
    short = {name: f"{value:.3g}" if isinstance(value, float) else value for name, value in values.items()}
    return " ".join(f"{name}={value}" for name, value in short.items())
