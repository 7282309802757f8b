"""A master's run from its beginning, or from where it was, to its end."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from warpzone.engine.rom import identify, rom, rom_path
from warpzone.errors import ConfigError, RomError
from warpzone.master.children import GroupProcess, Spawn
from warpzone.master.gpu_sharing import shared_gpu
from warpzone.master.opening import has_time_left, open_state, train_on
from warpzone.master.phases import PHASES
from warpzone.master.plan import MasterConfig, Plan, time_needed
from warpzone.master.state import State
from warpzone.master.work import Failed, Stopped, Work
from warpzone.run.lock import RunLock
from warpzone.run.stopping import EXIT_FAILED, EXIT_OK, StopFlag

Say = Callable[[str], None]


def rom_digest(config: MasterConfig) -> str:
    """The ROM's SHA-256; one that is not Super Mario Bros is refused."""
    image = rom(config.rom or None)
    dump = identify(image)
    if dump is None or dump.lost_levels:
        raise RomError(
            f"{rom_path(config.rom or None)} is not a known dump of Super Mario Bros: name one by --rom."
        )
    return hashlib.sha256(image).hexdigest()


def master(
    config: MasterConfig, plan: Plan, machine: Mapping[str, Any], show: Callable[[State], None], say: Say,
    spawn: Spawn | None = None,
) -> tuple[int, State]:  # fmt: skip
    """Do what is left to do; the exit code and how everything stands."""
    digest = rom_digest(config)
    try:
        config.out.mkdir(parents=True, exist_ok=True)
        lock = RunLock(config.out)
    except OSError as error:
        raise ConfigError(
            f"{config.out} can't be written ({error.strerror}): choose another --out."
        ) from error
    except ConfigError:
        raise ConfigError(
            f"Another warpzone master works in {config.out}: stop it, or choose another --out."
        ) from None
    try:
        state = open_state(config, plan, digest)
        if state.status == "done":
            least = math.ceil((state.spent_s + time_needed(plan)[1]) / 60)
            say(f"[master] done; --minutes {least} or more train on")
            return EXIT_OK, state
        return _work(config, plan, state, machine, show, say, spawn), state
    finally:
        lock.close()


def _work(
    config: MasterConfig, plan: Plan, state: State, machine: Mapping[str, Any], show: Callable[[State], None],
    say: Say, spawn: Spawn | None,
) -> int:  # fmt: skip
    state.machine, state.status = dict(machine), "running"
    state.sittings += 1
    ending = "[master] stopping: runs save what they have learned; the same command resumes"
    with StopFlag(lambda line: say(ending)) as stop, shared_gpu(config, plan, say) as variables:
        state.machine["cuda_mps"] = bool(variables)
        spawn = spawn or partial(GroupProcess, variables=variables)
        work = Work(config, plan, state, lambda: bool(stop), show, say, spawn)
        try:
            _do_phases(work)
            if state.extended and has_time_left(state, plan):
                train_on(state, config.out)
                _do_phases(work)
            state.status = "done"
            work.save()
        except Stopped:
            work.stop()
        except Failed as failure:
            state.phases[work.phase].status = "failed"
            state.phases[work.phase].note = str(failure)
            state.status = "failed"
            work.save()
            say(f"[master] {failure}; the same command tries again")
            return EXIT_FAILED
        return stop.exit_code


def _do_phases(work: Work) -> None:
    """All phases that are not done."""
    for name, do in PHASES.items():
        phase = work.state.phases[name]
        if phase.status in ("done", "skipped"):
            continue
        work.enter(name)
        do(work)
        if phase.status == "running":
            phase.status = "done"
