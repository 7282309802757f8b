"""How fast things are: the figures of bench/figures.py that are rates and times, each from its file in docs/data."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from statistics import median, quantiles
from typing import Any

from figure_sources import Figures, ends, load, percent, ratio

ENGINE = {
    "engine-undrawn": "Machine.step, nothing drawn",
    "engine-drawn": "Machine.step, every frame drawn",
    "engine-1": "64 environments, 1 thread",
    "engine-1-max": "64 environments, 1 thread, max of two frames",
    "engine-2": "64 environments, 2 threads",
    "engine-2-max": "64 environments, 2 threads, max of two frames",
}


def engine(side: str, machine: str = "") -> Figures:
    """Frames per second of a side of `warpzone bench env`, and how many times nes-py's that is."""
    file, name = f"engine{machine}.json", side + machine
    return {
        f"{name}-frames": lambda: f"{median(load(file)['frames_per_s'][ENGINE[side]]):,.0f}",
        **ratio(name, lambda: load(file)["times_nes_py"][ENGINE[side]]),
    }


def startup(moment: str, name: str) -> Figures:
    """Median seconds to a moment of a start, before and now, by the clock and of processor time; the lowest gain."""

    def seconds(version: str, kind: str) -> str:
        return f"{median(load('startup.json')['seconds'][version][moment][kind]):.1f}"

    sides = [(version, kind) for version in ("now", "before") for kind in ("clock", "processor")]
    return {
        **{f"{name}-{version}-{kind}": partial(seconds, version, kind) for version, kind in sides},
        f"{name}-gain": lambda: f"{load('startup.json')['before_over_now'][moment]['median']:.1f}",
        f"{name}-gain-low": lambda: f"{load('startup.json')['before_over_now'][moment]['low']:.1f}",
        f"{name}-gain-high": lambda: f"{load('startup.json')['before_over_now'][moment]['high']:.1f}",
    }


def turns(what: str, machine: str = "") -> Figures:
    """How much faster a build is than an older one, by `bench/turns.py`."""

    def values() -> Any:
        results = load(f"engine_turns{machine}.json")["results"]
        return next(row["ratio"] for row in results if row["what"] == what)

    return ratio(f"turns-{what}{machine}", values, ".2f")


def trained_on_hosts() -> Figures:
    """Whole trainings with hosts against those in one process (`bench/cluster_train.py`)."""

    def data() -> Any:
        return load("cluster_train.json")

    def per_s(side: str, file: str = "cluster_train.json") -> str:
        return f"{round(median(load(file)['rates'][side]), -2):,.0f}"

    return {
        **ratio("hosts-train", lambda: data()["times"], ".2f"),
        "hosts-train-8192": lambda: f"{load('cluster_train_8192.json')['times']['median']:.2f}",
        **ratio("hosts-train-lz4", lambda: load("cluster_train_lz4.json")["times"], ".2f"),
        "hosts-train-bytes": lambda: f"{data()['bytes_per_decision']:,.0f}",
        "hosts-train-rate": lambda: per_s("hosts"),
        "process-train-rate": lambda: per_s("process"),
        "hosts-train-idle": lambda: f"{100 * data()['idle']:.0f}",
        "process-train-2048": lambda: per_s("process", "cluster_train_2048.json"),
    }


def hosts(envs: int) -> Figures:
    """Environments on hosts against the same in one process, by `bench/cluster_speed.py`."""

    def point() -> Any:
        return next(row for row in load("cluster_speed.json")["points"] if row["envs_per_host"] == envs)

    return {
        **ratio(f"hosts-{envs}", lambda: point()["times"], ".2f"),
        f"hosts-{envs}-bytes": lambda: f"{point()['bytes_per_decision']:.0f}",
        f"hosts-{envs}-emulation": lambda: f"{point()['costs']['decision_us']:.0f}",
        f"hosts-{envs}-pack": lambda: f"{point()['costs']['pack_us']:.1f}",
        f"hosts-{envs}-unpack": lambda: f"{point()['costs']['unpack_us']:.1f}",
        f"hosts-{envs}-error": lambda: f"{point()['error']:+.0%}",
    }


def wheel_speed(key: str) -> str:
    return f"{load('wheel_speed.json')['results'][0]['ratio'][key]:.2f}"


def from_enter() -> list[float]:
    """Seconds of whole commands, of those that were timed in a row."""
    return [run["from_enter_s"] for run in load("learning-h200.json")["runs"][1:] if "from_enter_s" in run]


def trainers() -> Figures:
    """Whole training updates of ours and of Stable-Baselines3: decisions a second, and how many times theirs."""

    def speed(side: str) -> str:
        return f"{load('train_sb3.json')['results'][side]['decisions_per_s']:,.0f}"

    def times(side: str) -> dict[str, float]:
        return dict(load("train_sb3.json")["results"][side]["times"]["SB3"])

    named = {"native": "warpzone native", "torch": "warpzone torch", "sb3": "SB3"}
    return {
        **{f"train-{short}": partial(speed, side) for short, side in named.items()},
        **ratio("train-native-sb3", partial(times, named["native"]), ".1f"),
        **ratio("train-torch-sb3", partial(times, named["torch"]), ".1f"),
    }


def busy(processes: int) -> Figures:
    """Per cent of its speed that a vector keeps beside other processes."""

    def per_cent() -> dict[str, float]:
        share = load("busy.json")["share_of_speed_alone"][str(processes)]
        return {key: 100 * value for key, value in share.items()}

    return ratio(f"busy-{processes}", per_cent)


def sharing(kind: str) -> list[float]:
    """Decisions per second, in half-minutes with eight specialists or more, of the last sitting of a master."""
    times = load(f"master-h200-{kind}.json")["together"]
    breaks = [i for i, (before, after) in enumerate(pairwise(times), 1) if after[0] - before[0] > 600]
    # The half-minute in which they started is left out.
    return [rate for _, specialists, rate in times[max(breaks, default=0) + 1 :] if specialists >= 8]


def compat_speed(machine: str = "") -> Figures:
    """How many times as fast as the original `warpzone.compat` is (`bench/compat_speed.py`)."""
    return {
        name: figure
        for side in ("single", "vector", "copying", "writable")
        for name, figure in ratio(
            f"compat-{side}{machine}",
            lambda side=side: load(f"compat_speed{machine}.json")["times_the_original"][side],  # type: ignore[misc]
        ).items()
    }


def training_speed() -> Figures:
    """Decisions a second of a whole training on one H200, after its first metrics, and what the time went into."""

    def column(name: str) -> list[float]:
        data = load("train-h200.json")
        return [row[data["fields"].index(name)] for row in data["metrics"]]

    def share(name: str) -> str:
        return percent(median(column(name)), 0)

    def seconds() -> float:
        return column("elapsed_s")[-1] - column("elapsed_s")[0]

    return {
        "train-h200-seconds": lambda: f"{seconds():.0f}",
        "train-h200": lambda: f"{(column('global_step')[-1] - column('global_step')[0]) / seconds():,.0f}",
        **ends("train-h200", lambda: quantiles(column("env_steps_per_sec"), n=4)),
        "train-h200-collecting": lambda: share("collect_share"),
        "train-h200-learning": lambda: share("learn_share"),
        "train-h200-gpu": lambda: f"{median(column('gpu_util_last')):.0f} %",
    }


def sixteen_threads() -> Figures:
    """Decisions a second of 1,024 environments on 16 threads (`bench/threads.py`)."""
    ends = {"": "median", "-low": "low", "-high": "high"}
    return {
        f"threads-16-decisions{end}": lambda key=key: (  # type: ignore[misc]
            f"{round(load('threads-16.json')['vector']['frames_per_s']['all'][key] / 4, -3):,.0f}"
        )
        for end, key in ends.items()
    }


def threads(name: str, side: str) -> Figures:
    """How many times as fast 16 threads are, with the middle half."""
    ends = {name: "median", f"{name}-low": "low", f"{name}-high": "high"}
    return {
        figure: lambda key=key: f"{load('threads-16.json')[side][key]:.1f}"  # type: ignore[misc]
        for figure, key in ends.items()
    }
