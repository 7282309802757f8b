"""Arrivals: moments at which an agent came from the stage before, tall or with fire, at another count of the timers.

Episodes of training begin at the start of a stage with a small Mario. In the whole game he arrives as the stage before
left him. Episodes that begin so practise it.
"""

from __future__ import annotations

import io
import threading
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpzone.envs.config import ViewConfig
from warpzone.envs.make import make_envs
from warpzone.errors import ConfigError, Error
from warpzone.starts.columns import Columns
from warpzone.watch.durable import write_durably

RATE = 0.02
"""Update rate of the clear rate."""
_ROM = "rom_sha256"


def save_arrivals(folder: Path, stage: str, moments: Sequence[bytes], rom_sha256: str) -> Path:
    """Write them as STAGE.npz."""
    folder.mkdir(parents=True, exist_ok=True)
    packed = io.BytesIO()
    arrays = {f"{i:04d}": np.frombuffer(moment, np.uint8) for i, moment in enumerate(moments)}
    np.savez_compressed(packed, **{_ROM: np.array(rom_sha256)}, **arrays)  # type: ignore[arg-type]
    path = folder / f"{stage}.npz"
    write_durably(path, packed.getvalue())
    return path


def load_arrivals(
    folder: str, stages: Sequence[str], view: ViewConfig, rom_sha256: str, rom: str | None = None
) -> dict[int, list[bytes]]:
    """The arrivals in each stage, by its number, for those that have some in the folder; without a folder, none.

    Those of another ROM, or of an agent that sees the game in another way, are refused.
    """
    found: dict[int, list[bytes]] = {}
    if not folder:
        return found
    for number, stage in enumerate(stages):
        path = Path(folder) / f"{stage}.npz"
        try:
            with np.load(path, allow_pickle=False) as kept:
                made_with = str(kept[_ROM])
                moments = [kept[name].tobytes() for name in sorted(kept.files) if name != _ROM]
        except FileNotFoundError:
            continue
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
            raise ConfigError(f"{path} holds no arrivals: {error}.") from error
        if made_with != rom_sha256:
            raise ConfigError(f"The arrivals in {path} are of another ROM.")
        if moments:
            found[number] = moments
    if not found:
        raise ConfigError(
            f"{folder} has no arrivals in {', '.join(stages)}: collect some with `warpzone explore --checkpoint RUN`."
        )
    envs = make_envs(view, 1, [stages[number] for number in found], threads=1, frame_stack=1, rom=rom)
    try:
        envs.reset(seed=0)
        for number, moments in found.items():
            try:
                for moment in moments:
                    envs.restore(0, moment)
            except (Error, ValueError) as error:
                raise ConfigError(
                    f"The arrivals of {stages[number]} in {folder} don't fit: {error}"
                ) from error
    finally:
        envs.close()
    return found


class Arrivals:
    """Receives every step on the collecting thread and lets a share of the next episodes begin with an arrival."""

    def __init__(
        self, moments: Mapping[int, Sequence[bytes]], stages: Sequence[str], share: float,
        weights: Callable[[], NDArray[np.float64]], seed: int = 0,
    ) -> None:  # fmt: skip
        self.stages = list(stages)
        self._moments = moments
        self._has = np.array([float(stage in moments) for stage in range(len(stages))])
        self._share, self._weights = share, weights
        self._random = np.random.default_rng([seed, 0xA221])
        self.columns = Columns()
        self._queued: dict[int, tuple[int, int]] = {}
        self._cleared = dict.fromkeys(moments, 0.0)
        self._lock = threading.Lock()

    def observe(self, columns: slice, info: Mapping[str, Any]) -> None:
        """Process one step of the environments in `columns`."""
        ended = info.get("_final_info")
        if not self._moments or ended is None or not ended.any():
            return
        with self._lock:
            final, lost = info["final_info"], info.get("worker_lost", np.zeros_like(ended))
            limits = np.cumsum(self._weights() * self._has * self._share)
            for row in np.flatnonzero(ended).tolist():
                stage, column = int(final["stage_index"][row]), columns.start + row
                # Nobody knows how the episode of a lost environment would have ended.
                if final["from_snapshot"][row] and stage in self._cleared and not lost[row]:
                    self._cleared[stage] += RATE * (bool(final["flag_get"][row]) - self._cleared[stage])
                if info["from_snapshot"][row] or lost[row]:
                    # What was queued is being played, or lost too.
                    self._queued.pop(column, None)
                chosen = int(np.searchsorted(limits, self._random.random(), side="right"))
                if chosen < len(limits):
                    which = int(self._random.integers(len(self._moments[chosen])))
                    self._queued[column] = chosen, which
                    self.columns.queue_start(column, self._moments[chosen][which])

    def metrics(self) -> dict[str, Any]:
        """How often each stage is cleared after an arrival; episodes count less the older they are."""
        with self._lock:
            rates = {self.stages[stage]: round(rate, 3) for stage, rate in self._cleared.items()}
            return {"arrival_cleared": rates}

    def state_dict(self) -> dict[str, Any]:
        """The starts that are queued, saved with the environments."""
        with self._lock:
            return {
                "moments": self._counts(),
                "queued": [[column, *start] for column, start in self._queued.items()],
                "cleared": {self.stages[stage]: rate for stage, rate in self._cleared.items()},
                "random": self._random.bit_generator.state,
            }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Resume, if the arrivals are the same."""
        # Checkpoints of earlier versions have no arrivals.
        if state.get("moments") != self._counts():
            return
        with self._lock:
            self._random.bit_generator.state = state["random"]
            self._cleared = {self.stages.index(stage): rate for stage, rate in state["cleared"].items()}
            self._queued = {column: (stage, which) for column, stage, which in state["queued"]}
            for column, (stage, which) in self._queued.items():
                self.columns.queue_start(column, self._moments[stage][which])

    def _counts(self) -> dict[str, int]:
        return {self.stages[stage]: len(moments) for stage, moments in self._moments.items()}
