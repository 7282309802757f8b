"""What the figures of bench/figures.py say: values and tables, each from the file in docs/data that a command wrote."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from functools import cache, partial
from math import sqrt
from pathlib import Path
from typing import Any

DATA = Path(__file__).parents[1] / "docs" / "data"
Z = 1.96
MODES = ("sampled", "greedy", "sticky")
Figures = dict[str, Callable[[], str]]
"""The text of each figure by its name."""


@cache
def load(name: str) -> Any:
    return json.loads((DATA / name).read_text())


def ends(name: str, values: Callable[[], Iterable[float]], form: str = ",.0f") -> Figures:
    """Two figures: the least and the most of some values, as NAME-low and NAME-high."""
    return {
        f"{name}-low": lambda: format(min(values()), form),
        f"{name}-high": lambda: format(max(values()), form),
    }


def percent(rate: float, digits: int = 1) -> str:
    return f"{100 * rate:.{digits}f} %"


def with_interval(result: Any) -> str:
    """A clear rate and its 95 % interval, without decimals."""
    return f"{percent(result['clear_rate'], 0)} ({100 * result['low']:.0f} to {100 * result['high']:.0f})"


def ratio(name: str, values: Callable[[], dict[str, float]], form: str = ",.0f") -> Figures:
    """Three figures: the median of a ratio over the rounds, the lowest and the highest."""

    def pick(*keys: str) -> str:
        return format(next(values()[key] for key in keys if key in values()), form)

    return {
        name: lambda: pick("median"),
        f"{name}-low": lambda: pick("low", "min"),
        f"{name}-high": lambda: pick("high", "max"),
    }


def table(head: str, rows: Iterable[str], right: str = "") -> str:
    """A table of a page; `right` names the columns of numbers."""
    columns = head.strip("| ").split(" | ")
    line = "|".join("---:" if column in right.split(", ") else "---" for column in columns)
    return "\n\n" + "\n".join([head, f"|{line}|", *rows]) + "\n\n"


def rates_32(mode: str, file: str = "eval-32.json") -> list[float]:
    return [row["clear_rate"] for row in load(file)["results"][mode]]


def mean_32(mode: str, file: str = "eval-32.json") -> float:
    rates = rates_32(mode, file)
    return sum(rates) / len(rates)


def at_80(mode: str, file: str = "eval-32.json") -> str:
    """On how many stages the policy clears at least 80 % of its episodes."""
    return str(sum(rate >= 0.8 for rate in rates_32(mode, file)))


def half_width_32() -> float:
    """Half the 95 % interval of the mean over stages, each of which has its own rate."""
    rows = load("eval-32.json")["results"]["sampled"]
    variance = sum(r["clear_rate"] * (1 - r["clear_rate"]) / r["episodes"] for r in rows)
    return Z * sqrt(variance) / len(rows)


def last_maze(number: Callable[[Any], float], spec: str = ".0f") -> str:
    """A number of each run that learned 8-4, by seed."""
    *first, last = (f"{number(run):{spec}}" for run in load("maze-8-4-three-seeds.json")["runs"])
    return f"{', '.join(first)} and {last}"


def random_starts(name: str, known: str, random: str) -> Figures:
    """A policy's clear rates from random starts beside those from starts that are known."""
    return {
        f"{name}-random-start-mean": lambda: percent(mean_32("sampled", random)),
        f"{name}-random-start-at-80": lambda: at_80("sampled", random),
        f"{name}-random-start-table": lambda: starts_table(known, random),
    }


def starts_table(known: str, random: str) -> str:
    """Per cent of the sampled episodes cleared with up to 30 no-ops and with random starts, by world and stage."""
    pairs = zip(rates_32("sampled", known), rates_32("sampled", random), strict=True)
    cells = [f"{100 * plain:.0f}, {100 * other:.0f}" for plain, other in pairs]
    rows = [f"| {world} | {' | '.join(cells[4 * world - 4 : 4 * world])} |" for world in range(1, 9)]
    return table("| world | -1 | -2 | -3 | -4 |", rows)


def learned(stage: str, file: str = "learning-cpu.json") -> list[dict[str, Any]]:
    """Runs of a stage with the defaults."""
    return [run for run in load(file)["runs"] if run["stage"] == stage and not run["flags"]]


def with_hosts(on_hosts: bool) -> str:
    """Millions of decisions of each seed until 1-1 was learned, with environments on hosts or in process."""
    runs = [run for run in load("learning-hosts.json")["runs"] if bool(run["flags"]) == on_hosts]
    return ", ".join(
        f"{run['decisions'] / 1e6:.2f}" for run in sorted(runs, key=lambda run: int(run["seed"]))
    )


def first_seeds() -> list[dict[str, Any]]:
    """Of every stage that was trained with the defaults on two cores, the run with seed 0."""
    return [run for run in load("stages-cpu.json")["runs"] if run["seed"] == 0 and not run["flags"]]


def stages_table() -> str:
    """A row for each of them."""
    rows = [
        f"| {run['stage']} | {with_interval(run)} "
        f"| {run['seconds'] / 60:.1f} | {run['decisions'] / 1e6:.1f} | {'yes' if run['reached'] else 'no'} |"
        for run in first_seeds()
    ]
    head = "| stage | clear rate (95 % interval) | minutes | million decisions | stopped at the target |"
    return table(head, rows, "minutes, million decisions")


def game(mode: str, key: str, form: str, file: str = "game-32.json") -> str:
    return format(load(file)["game"][mode][key], form)


def flawless_bound(which: int) -> str:
    """One end of the interval of whole games that were finished without a death, sampled."""
    bounds = load("game-32.json")["game"]["sampled"]["finished_without_death_interval"]
    return f"{100 * bounds[which]:.1f}"


def cluster_model() -> Figures:
    """The costs that `bench/cluster_model.py` assumes, and what it predicts from them."""

    def cost(key: str) -> float:
        return float(load("cluster_model.json")["costs"][key])

    def predictions() -> str:
        head = "| cores | hosts | learner's cores | decisions/s | what sets the pace | lag | over the link |"
        rows = [
            f"| {p['cores']:,} | {p['hosts']} | {p['learner_cores']} | {p['decisions_per_s']:,.0f} | {p['busiest']} "
            f"| {p['lag_ms']:.0f} ms | {p['gbit_per_s']:.1f} Gbit/s |"
            for p in load("cluster_model.json")["predictions"]
        ]
        return table(head, rows)

    keys = ("decision_us", "pack_us", "unpack_us", "bytes_per_decision", "call_us", "call_cpu_us")
    return {
        "cluster-model": predictions,
        **{f"model-{key}": partial(lambda key: f"{cost(key):,.0f}", key) for key in keys},
        "model-core-hour": lambda: f"{3600 / (cost('decision_us') + cost('pack_us')):.0f}",
    }


def wheels_table() -> str:
    """A row for each wheel that was built: its size, what auditwheel found and how it played."""
    rows = []
    for wheel in load("wheels.json")["wheels"]:
        played: dict[str, list[str]] = {}
        for python, said in wheel["played"].items():
            played.setdefault(said, []).append(python)
        shown = "; ".join(f"{', '.join(pythons)}: {said}" for said, pythons in played.items())
        rows.append(f"| `{wheel['tag']}` | {wheel['megabytes']:.1f} | {wheel['auditwheel']} | {shown} |")
    return table("| wheel | MB | auditwheel | played |", rows)


def kills_table() -> str:
    """A row for each kind of kill (`bench/kill_campaign.py`)."""
    columns = ("kills", "while_saving", "failed_saves", "most_lost", "unsound")
    rows = [
        f"| {kind} | " + " | ".join(str(counts[column]) for column in columns) + " |"
        for kind, counts in load("kills.json")["kinds"].items()
    ]
    return table("| kind | kills | during a save | saves that failed | most updates lost | unsound |", rows)


def master_kills_table() -> str:
    """A row for a killed `warpzone master` and one for one left alone (`bench/master_kills.py`)."""
    rows = []
    for name, file in (("killed", "master_kills.json"), ("left alone", "master_kills-alone.json")):
        run = load(file)
        kills = ", ".join(f"{phase} {count}" for phase, count in run["kills"].items()) or "none"
        rates = ", ".join(f"{stage} {percent(rate, 0)}" for stage, rate in run["clear_rate"].items())
        minutes = f"{run['spent_s'] / 60:.1f} | {run['wall_s'] / 60:.1f}"
        rows.append(f"| {name} | {kills} | {run['children_that_outlived_a_kill']} | {minutes} | {rates} |")
    return table(
        "| master | kills | child processes left | minutes counted | minutes in all | cleared |", rows
    )


def master_rates(file: str, mode: str) -> list[float]:
    """Clear rates of the policy that a master chose, stage by stage."""
    state = load(file)
    return [row["clear_rate"] for row in state["evaluations"][state["chosen"]][mode].values()]


def master_mean(file: str, mode: str) -> str:
    rates = master_rates(file, mode)
    return percent(sum(rates) / len(rates))


def mastered(name: str, file: str, counted: tuple[int, ...] = ()) -> Figures:
    """One policy by one command, `warpzone master`; `counted`: how many stages reach that per cent."""

    def at_least(per_cent: int) -> str:
        return str(sum(rate >= per_cent / 100 for rate in master_rates(file, "sampled")))

    def minutes() -> str:
        return f"{sum(phase['spent_s'] for phase in load(file)['phases'].values()) / 60:.1f}"

    return {
        f"{name}-minutes": minutes,
        f"{name}-lowest": lambda: percent(min(master_rates(file, "sampled")), 0),
        **{f"{name}-at-{n}": partial(at_least, n) for n in counted},
        **{f"{name}-{mode}": partial(master_mean, file, mode) for mode in MODES},
    }


def mastered_all(name: str, file: str) -> Figures:
    """The 32-stage policy that one command made, with its whole games and the table of its stages."""

    def of(mode: str, key: str) -> float:
        return float(load(file)["game"][mode][key])

    return {
        **mastered(name, file, counted=(80, 90)),
        **{f"{name}-game-{m}": lambda m=m: f"{of(m, 'mean_passed_without_death'):.1f}" for m in MODES},
        **{f"{name}-game-{m}-most": lambda m=m: f"{of(m, 'most_passed_without_death'):.0f}" for m in MODES},
        f"{name}-table": partial(master_table, file),
    }


def unfinished_master() -> Figures:
    """The run of eighteen minutes whose policy after fine-tuning was evaluated, before it was stopped."""
    file, games = "master-h200-18.json", "game-32-18.json"

    def rates(mode: str) -> list[float]:
        return list(load(file)["evaluations"]["polished"][mode].values())

    def mean(mode: str) -> str:
        return percent(sum(rates(mode)) / len(rates(mode)))

    def survived(games: str, stage: str) -> str:
        """Of the sampled games that came to a stage without a death, those that survived it."""
        world, number = map(int, stage.split("-"))
        before = 4 * (world - 1) + number - 1
        passed = [one["passed_without_death"] for one in load(games)["game"]["sampled"]["each"]]
        return f"{sum(n > before for n in passed)} of {sum(n >= before for n in passed)}"

    return {
        "master-18-minutes": lambda: f"{sum(load(file)['phases'].values()) / 60:.1f}",
        "master-18-training": lambda: (
            f"{sum(s for p, s in load(file)['phases'].items() if p != 'evaluate') / 60:.1f}"
        ),
        "master-18-specialists": lambda: f"{load(file)['phases']['specialists'] / 60:.1f}",
        "master-18-decisions": lambda: (
            f"{sum(one['decisions'] for one in load(file)['specialists'].values()) / 1e6:.0f}"
        ),
        "master-18-never": lambda: str(sum(rate < 0.01 for rate in rates("sampled"))),
        "master-18-at-80": lambda: str(sum(rate >= 0.8 for rate in rates("sampled"))),
        **{f"master-18-{mode.replace(' ', '-')}": partial(mean, mode) for mode in (*MODES, "random start")},
        "master-18-game": lambda: game("sampled", "mean_passed_without_death", ".1f", games),
        "master-18-game-water": lambda: survived(games, "2-2"),
        "game-sampled-water": lambda: survived("game-32.json", "2-2"),
        "master-18-game-wall": lambda: survived(games, "4-3"),
    }


def master_table(file: str) -> str:
    """Sampled, greedy and sticky clear rates of the 32 stages, and what their specialists took."""
    state = load(file)
    played = state["evaluations"][state["chosen"]]
    took = {stage: group for group in state["specialists"].values() for stage in group["stages"]}
    rows = []
    for stage in sorted(took):
        rates = " | ".join(percent(played[mode][stage]["clear_rate"], 0) for mode in MODES)
        group = took[stage]
        status = "" if group["status"] == "done" else ", unfinished"
        rows.append(
            f"| {stage} | {rates} | {percent(group['clear_rate'][stage], 0)}, {group['spent_s']:.0f} s, "
            f"{group['decisions'] / 1e6:.1f} M{status} |"
        )
    return table("| stage | sampled | greedy | sticky | its specialist |", rows, "sampled, greedy, sticky")


def faults() -> Figures:
    """Hosts of one run that were killed or stopped."""

    def of(key: str) -> Any:
        return load("cluster_faults.json")[key]

    return {
        "faults": lambda: str(of("faults")),
        "faults-restarts": lambda: str(of("restarts")),
        "faults-longest": lambda: f"{of('longest_update_s'):.1f}",
        "faults-lost": lambda: f"{of('episodes_lost'):,}",
        "faults-decisions": lambda: f"{of('decisions') / 1e6:.1f}",
        "faults-rate": lambda: with_interval(of("fresh")),
        **{
            f"{name}-{who}": lambda file=file, who=who: "{:.0f} to {:.0f}".format(*load(file)["memory"][who])
            for name, file in (("faults-memory", "cluster_faults.json"), ("memory", "cluster_memory.json"))
            for who in ("learner", "host", "ray")
        },
    }


def lost_nodes() -> Figures:
    """A sweep and a master under which a node was killed."""

    def trials() -> Any:
        return load("cluster_nodes.json")["sweep"]

    def rate(stage: str) -> str:
        return with_interval(load("cluster_nodes.json")["master"]["evaluation"]["sampled"][stage])

    return {
        "nodes-trials": lambda: f"{sum(trials()['trials'].values())}",
        "nodes-again": lambda: f"{trials()['begun_again']}",
        "nodes-minutes": lambda: f"{load('cluster_nodes.json')['master']['seconds'] / 60:.1f}",
        "nodes-first": lambda: rate("1-1"),
        "nodes-second": lambda: rate("1-4"),
    }
