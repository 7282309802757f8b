"""`warpzone control RUN REQUEST...`: pause, stop or change a run while it trains."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tyro

from warpzone.checkpoints.finding import find_place
from warpzone.cli.flags import blank, parse
from warpzone.cli.settings import RunsFolder
from warpzone.errors import ConfigError
from warpzone.run.control import COMMANDS, STAGE_MIX, STATE_FILE, TOKEN_FILE, check_request, send_request
from warpzone.run.stopping import EXIT_FAILED, EXIT_OK
from warpzone.watch.jsonl import json_file

POLL_S = 0.1


@dataclass(frozen=True)
class ControlConfig(RunsFolder):
    """Send requests to a run that is training and print its answers; without a request, its current settings.

    Examples: `warpzone control mario learning_rate=2e-4 reward_flag=80`, `warpzone control mario pause`,
    `warpzone control mario stage_mix=1-1:1,1-2:3`.
    """

    run: tyro.conf.Positional[str]
    """Name or folder of the run."""
    requests: tyro.conf.Positional[tuple[str, ...]] = ()
    """Requests: pause, resume, checkpoint, stop, or SETTING=VALUE."""
    timeout: float = 60.0
    """Seconds to wait for the answer, which comes after the current update."""


SETTINGS = {"": ControlConfig}


def run(argv: list[str]) -> int:
    """Parse, send and wait; 1 if something was refused or nobody answered."""
    config = parse(blank(ControlConfig), argv, "warpzone control")
    folder = find_place(config.run, config.runs_dir)
    requests = as_requests(config.requests)
    if not requests:
        print(
            json.dumps({k: v for k, v in json_file(folder / STATE_FILE).items() if k != "results"}, indent=2)
        )
        return EXIT_OK
    for request in requests:
        check_request(request)
    try:
        token = (folder / TOKEN_FILE).read_text().strip()
    except OSError as error:
        raise ConfigError(
            f"The token of {folder} can't be read ({error.strerror}): run this as its owner."
        ) from error
    done = all(_done(folder, token, request, config.timeout) for request in requests)
    return EXIT_OK if done else EXIT_FAILED


def as_requests(words: tuple[str, ...]) -> list[dict[str, Any]]:
    """The words as requests: all settings together, and commands one by one."""
    settings = dict(word.split("=", 1) for word in words if "=" in word)
    values = {
        name: _mix(text) if name == STAGE_MIX else _number(name, text) for name, text in settings.items()
    }
    requests: list[dict[str, Any]] = [{"command": "set", "values": values}] if values else []
    for word in (word for word in words if "=" not in word):
        if word == "set" or word not in COMMANDS:
            known = ", ".join(name for name in COMMANDS if name != "set")
            raise ConfigError(
                f"There is no request {word!r}: use {known}, or a setting as learning_rate=2e-4."
            )
        requests.append({"command": word})
    return requests


def _number(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ConfigError(f"{name} must be a number, not {text!r}.") from None


def _mix(text: str) -> dict[str, float]:
    """Shares of stages, such as 1-1:1,1-2:3."""
    pairs = [part.partition(":") for part in text.split(",")]
    return {stage: _number(f"The share of {stage}", share) for stage, _, share in pairs}


def _done(folder: Path, token: str, request: dict[str, Any], timeout_s: float) -> bool:
    """Send a request and print the trainer's answer; whether it was accepted."""
    identity = send_request(folder, token, request)
    until = time.monotonic() + timeout_s
    while time.monotonic() < until:
        for result in json_file(folder / STATE_FILE).get("results", []):
            if result["id"] == identity:
                print(f"[control] update {result['update']}: {result['text']}")
                return bool(result["accepted"])
        time.sleep(POLL_S)
    print(f"[control] no answer from {folder} within {timeout_s:g} s: see its train.log")
    return False
