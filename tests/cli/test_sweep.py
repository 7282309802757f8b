"""A search trains, cuts off, goes on where it was, and says what mattered."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.run.small_runs import SMALL
from warpzone.cli.sweep import run
from warpzone.cli.train import settings
from warpzone.errors import ConfigError
from warpzone.run.sweep import SPACE, Cut, Referee, parse_names, score, with_values

optuna = pytest.importorskip("optuna", reason="Optuna is not installed: pip install 'warpzone[sweep]'")


def sweep(runs: Path, trials: int) -> None:
    own = ["--name", "s", "--trials", str(trials), "--search", "learning_rate,gamma", "--runs-dir", str(runs)]
    assert run([*own, "--prune-every", "1", "--", *SMALL, "--total-updates", "2", "--seed", "40"]) == 0


def test_a_study_goes_on_where_it_was_and_draws_what_mattered(tmp_path: Path) -> None:
    sweep(tmp_path, 2)
    sweep(tmp_path, 1)
    study = optuna.load_study(study_name="s", storage=f"sqlite:///{tmp_path / 's.db'}")
    assert [trial.number for trial in study.trials] == [0, 1, 2]
    rates = [trial.params["learning_rate"] for trial in study.trials]
    assert len(set(rates)) == 3  # what is added is not the first search again
    for trial in study.trials:
        config = json.loads((tmp_path / f"s-trial-{trial.number:04d}" / "config.json").read_text())
        assert config["learn"]["learning_rate"] == pytest.approx(trial.params["learning_rate"])
        assert config["learn"]["gamma"] == trial.params["gamma"]
        assert config["run"]["seed"] == 40 + trial.number
    assert (tmp_path / "s_plots" / "parallel.png").stat().st_size > 1000


def test_a_trial_that_is_not_worth_its_time_is_cut_off() -> None:
    reported = []

    def report(value: float, update: int) -> bool:
        reported.append((update, value))
        return value > 0.5

    referee = Referee(report, every_updates=10)
    good = {"clear_rate_mean": 0.75, "env_mean_x_pos": 0.0}
    referee.update({**good, "update": 5})
    referee.update({**good, "update": 10})
    with pytest.raises(Cut):
        referee.update({**good, "update": 20, "clear_rate_mean": 0.25})
    assert reported == [(10, 0.75), (20, 0.25)]


def test_before_the_first_clear_further_is_better() -> None:
    near = score({"clear_rate_mean": None, "env_mean_x_pos": 300.0})
    far = score({"clear_rate_mean": 0.0, "env_mean_x_pos": 900.0})
    assert near < far < score({"clear_rate_mean": 0.01, "env_mean_x_pos": 0.0})


def test_every_setting_that_can_be_searched_is_one_of_the_configuration() -> None:
    base = settings(SMALL, {})
    values = {name: space.values[0] for name, space in SPACE.items()}
    changed = with_values(base, values)
    for name, space in SPACE.items():
        assert getattr(getattr(changed, space.room), name) == values[name]


def test_an_unknown_setting_is_named() -> None:
    with pytest.raises(ConfigError, match="'speed' can't be searched"):
        parse_names("gamma, speed")


def test_a_study_that_cannot_be_opened_is_named(tmp_path: Path) -> None:
    (tmp_path / "s.db").write_text("no database")
    for runs in (tmp_path, tmp_path / "s.db" / "below"):
        with pytest.raises(ConfigError, match=r"s\.db can't be opened as a study"):
            run(["--name", "s", "--runs-dir", str(runs)])
