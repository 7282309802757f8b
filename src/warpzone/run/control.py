"""Steering a run from outside: requests in a small file, obeyed between updates, each written to the run's log.

The trainer makes two files in the run's folder that only its owner can read: `control.token`, the secret of this run,
and `control.jsonl`, to which a viewer appends requests. A request without the token does nothing. What came of the last
ones is in `control_state.json`.
"""

from __future__ import annotations

import hmac
import json
import os
import secrets
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpzone.errors import ConfigError, Error
from warpzone.learn.learner import Learner
from warpzone.run.build import Components
from warpzone.run.stopping import StopFlag
from warpzone.starts.curriculum import Curriculum
from warpzone.watch.durable import write_durably
from warpzone.watch.heartbeat import Heartbeat

TOKEN_FILE, REQUEST_FILE, STATE_FILE = "control.token", "control.jsonl", "control_state.json"
MOST_BYTES = 64 << 10
"""Most that is read of the request file at a time."""
PAUSE_POLL_S = 0.2
RESULTS_KEPT = 20

ENVELOPE = ("id", "token", "command")
COMMANDS = ("pause", "resume", "checkpoint", "stop", "set")
BOUNDS: dict[str, tuple[float, float]] = {
    "learning_rate": (1e-7, 1e-1),
    "entropy_coef": (0.0, 1.0),
    "reward_distance_weight": (0.0, 10.0),
    "reward_score_weight": (0.0, 10.0),
    "reward_flag": (0.0, 1000.0),
    "reward_death": (0.0, 1000.0),
    "reward_time_weight": (0.0, 10.0),
    "reward_wrong_turn": (0.0, 1000.0),
    "reward_coin_weight": (0.0, 1000.0),
}
"""What can be changed while a run trains, and how far."""
STAGE_MIX = "stage_mix"
LARGEST_SHARE = 1e6


def check_request(request: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """The command and its settings, or ConfigError with a sentence that says what is wrong."""
    command = request.get("command")
    if command not in COMMANDS:
        raise ConfigError(f"There is no request {str(command)[:40]!r}: use {', '.join(COMMANDS)}.")
    if command != "set":
        return str(command), {}
    # Settings stand under `values`, or beside the command.
    values = request.get("values", {name: request[name] for name in request if name not in ENVELOPE})
    if not isinstance(values, Mapping) or not values:
        raise ConfigError('Name a setting to change: {"command": "set", "values": {"learning_rate": 2e-4}}.')
    return "set", {str(name): _checked(str(name), value) for name, value in values.items()}


def _checked(name: str, value: Any) -> Any:
    if name == STAGE_MIX:
        if not isinstance(value, Mapping) or not value or len(value) > 64:
            raise ConfigError("stage_mix gives stages and their shares, such as {'1-1': 1, '1-2': 3}.")
        mix = {str(stage)[:8]: _number(f"The share of {stage}", share) for stage, share in value.items()}
        if any(not 0 <= share <= LARGEST_SHARE for share in mix.values()) or not any(mix.values()):
            raise ConfigError(
                f"Shares of stages lie between 0 and {LARGEST_SHARE:,.0f}, and one must be positive."
            )
        return mix
    if name not in BOUNDS:
        known = ", ".join((*BOUNDS, STAGE_MIX))
        raise ConfigError(f"{name[:40]!r} can't be changed while a run trains: choose one of {known}.")
    low, high = BOUNDS[name]
    number = _number(name, value)
    if not low <= number <= high:
        raise ConfigError(f"{name} must lie between {low:g} and {high:g}; {number:g} was asked for.")
    return number


def _number(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e300:
        raise ConfigError(f"{name} must be a number, not {str(value)[:40]!r}.")
    return float(value)


# ---- the viewer's side ----


def is_token(folder: Path, token: str) -> bool:
    """Whether `token` is the run's own."""
    try:
        own = (folder / TOKEN_FILE).read_text().strip()
    except (OSError, UnicodeDecodeError):
        return False
    return bool(own) and hmac.compare_digest(own.encode(), token.encode("utf-8", "replace"))


def send_request(folder: Path, token: str, request: Mapping[str, Any]) -> str:
    """Append a request for the trainer to obey after its present update; the request's id.

    What is wrong with it is said at once, as ConfigError, and nothing is written.
    """
    command, values = check_request(request)
    if not (folder / REQUEST_FILE).is_file():
        raise ConfigError(f"{folder.name} is not training now: resume it with `warpzone train` first.")
    identity = secrets.token_hex(8)
    line = json.dumps({"id": identity, "token": token, "command": command, "values": values}) + "\n"
    descriptor = os.open(folder / REQUEST_FILE, os.O_WRONLY | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0))
    try:
        os.write(descriptor, line.encode())
    finally:
        os.close(descriptor)
    return identity


# ---- the trainer's side ----


@dataclass
class Steered:
    """What a request can act on."""

    parts: Components
    curriculum: Curriculum
    stop: StopFlag
    heartbeat: Heartbeat
    save: Callable[[], bool]
    """Save `latest` now; whether there was something to save."""
    say: Callable[[str], None]


class Control:
    """Reads the requests of a run. `obey` is called between updates and costs one look at a file's size."""

    def __init__(self, folder: Path, steered: Steered) -> None:
        self._folder = folder
        self._on = steered
        self._token = _own_token(folder / TOKEN_FILE)
        self._path = folder / REQUEST_FILE
        # Requests to an earlier session are not for this one.
        self._path.unlink(missing_ok=True)
        self._file = os.fdopen(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600), "rb")
        self._at = 0
        self._paused = False
        self._results: deque[dict[str, Any]] = deque(maxlen=RESULTS_KEPT)
        self._write_state()

    def obey(self, update: int) -> float:
        """Do what was asked for since the last call; the seconds that the run was paused meanwhile."""
        self._take_requests(update)
        if not self._paused:
            return 0.0
        began = time.monotonic()
        while self._paused and not self._on.stop:
            self._on.heartbeat.beat("paused")
            time.sleep(PAUSE_POLL_S)
            self._take_requests(update)
        return time.monotonic() - began

    def close(self) -> None:
        """Take no more requests."""
        self._file.close()
        self._path.unlink(missing_ok=True)

    def _take_requests(self, update: int) -> None:
        if os.fstat(self._file.fileno()).st_size <= self._at:
            return
        self._file.seek(self._at)
        data = self._file.read(MOST_BYTES)
        whole, newline, _ = data.rpartition(b"\n")
        if not newline:
            # A line that never ends is not a request.
            self._at += len(data) if len(data) == MOST_BYTES else 0
            return
        self._at += len(whole) + 1
        for line in whole.split(b"\n"):
            self._take(line, update)

    def _take(self, line: bytes, update: int) -> None:
        try:
            request = json.loads(line)
        except (ValueError, RecursionError):
            request = None
        identity = request.get("id") if isinstance(request, dict) else None
        try:
            if not isinstance(request, dict):
                raise ConfigError("A request is a JSON object on one line.")
            given = str(request.get("token", "")).encode("utf-8", "replace")
            if not hmac.compare_digest(self._token.encode(), given):
                raise ConfigError("The token is not this run's.")
            done, accepted = self._do(*check_request(request)), True
        except Error as error:
            done, accepted = f"refused: {error}", False
        self._on.say(f"[train]{'' if accepted else '[warn]'} control, update {update}: {done}")
        result = {"id": str(identity)[:32], "accepted": accepted, "text": done, "update": update}
        self._results.append({**result, "timestamp": time.time()})
        self._write_state()

    def _do(self, command: str, values: Mapping[str, Any]) -> str:
        match command:
            case "pause":
                self._paused = True
                return "paused"
            case "resume":
                self._paused = False
                return "resumed"
            case "checkpoint":
                return "checkpoint `latest` saved" if self._on.save() else "nothing new to save yet"
            case "stop":
                self._on.stop.request("control")
                return "stopping after this update"
            case _:
                return self._set(values)

    def _set(self, values: Mapping[str, Any]) -> str:
        # All of it is checked before any of it is done.
        weights = self._stage_weights(values[STAGE_MIX]) if STAGE_MIX in values else None
        before = self._values()
        rewards = {name: value for name, value in values.items() if name.startswith("reward_")}
        if "learning_rate" in values:
            set_learning_rate(self._on.parts.learner, values["learning_rate"])
        if "entropy_coef" in values:
            set_entropy(self._on.parts.learner, values["entropy_coef"])
        for envs in self._on.parts.envs:
            envs.rewards.config = replace(envs.rewards.config, **rewards)
        if weights is not None:
            self._on.curriculum.mix = weights
        said = [f"{name} {_shown(before[name])} -> {_shown(value)}" for name, value in values.items()]
        return "set " + "; ".join(said)

    def _stage_weights(self, mix: Mapping[str, float]) -> NDArray[np.float64]:
        stages = self._on.curriculum.stages
        for stage in mix:
            if stage not in stages:
                raise ConfigError(f"{stage!r} is not among this run's stages ({', '.join(stages)}).")
        weights = np.array([mix.get(stage, 0.0) for stage in stages])
        shares: NDArray[np.float64] = weights / weights.sum()
        return shares

    def _values(self) -> dict[str, Any]:
        """All that can be changed, as it is now."""
        learner, rewards = self._on.parts.learner, self._on.parts.envs[0].rewards.config
        of_learner = ("learning_rate", "entropy_coef")
        values = {name: getattr(learner if name in of_learner else rewards, name) for name in BOUNDS}
        curriculum = self._on.curriculum
        return {**values, STAGE_MIX: dict(zip(curriculum.stages, curriculum.weights().tolist(), strict=True))}

    def _write_state(self) -> None:
        values = self._values()
        mix = values.pop(STAGE_MIX)
        state = {"paused": self._paused, "values": values, STAGE_MIX: mix, "results": list(self._results)}
        try:
            write_durably(self._folder / STATE_FILE, (json.dumps(state, indent=1) + "\n").encode())
        except OSError as error:
            self._on.say(f"[train][warn] cannot write {STATE_FILE} ({error.strerror or error})")


def set_learning_rate(learner: Learner, wanted: float) -> None:
    """Let the next update use this rate, and the schedule go on from there."""
    now = learner.learning_rate
    base = learner.config.learning_rate * wanted / now if now > 0 else wanted
    learner.config = replace(learner.config, learning_rate=base)


def set_entropy(learner: Learner, wanted: float) -> None:
    """Let the next update use this weight of the entropy bonus, and the schedule go on from there."""
    now, config = learner.entropy_coef, learner.config
    if now > 0:
        coef, final = config.entropy_coef * wanted / now, config.entropy_final * wanted / now
    else:
        coef = final = wanted
    learner.config = replace(config, entropy_coef=coef, entropy_final=final)


def _shown(value: Any) -> str:
    if isinstance(value, Mapping):
        total = sum(value.values())
        return " ".join(f"{stage} {share / total:.0%}" for stage, share in value.items() if share)
    return f"{value:g}"


def _own_token(path: Path) -> str:
    """The run's secret: kept over its sessions, readable by its owner only."""
    try:
        token = path.read_text().strip()
        if len(token) >= 32 and not path.stat().st_mode & 0o077:
            return token
    except (OSError, UnicodeDecodeError):
        pass
    token = secrets.token_urlsafe(24)
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(token + "\n")
    return token
