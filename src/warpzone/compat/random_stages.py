"""Another stage each episode: what SuperMarioBrosRandomStagesEnv is, whatever its interface."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

WORLDS, STAGES = 8, 4


def draw_stage(generator: Any, stages: Sequence[str] | None) -> tuple[int, int]:
    """World and stage, from 0, drawn as the original draws them: the same seed gives the same stages."""
    if stages is not None and len(stages) > 0:
        world, stage = generator.choice(stages).split("-")
        return int(world) - 1, int(stage) - 1
    return generator.randint(1, 9) - 1, generator.randint(1, 5) - 1


class RandomStages:
    """One environment a stage; `env` is the one being played."""

    envs: list[list[Any]]

    def _make_stages(self, make: Any, stages: Sequence[str] | None) -> None:
        self.np_random: Any = np.random.RandomState()
        self.envs = [
            [make(target=(world + 1, stage + 1)) for stage in range(STAGES)] for world in range(WORLDS)
        ]
        self.env: Any = self.envs[0][0]
        self.viewer: Any = None
        self.stages = stages

    @property
    def screen(self) -> Any:
        return self.env.screen

    @property
    def ram(self) -> Any:
        return self.env.ram

    def seed(self, seed: int | None = None) -> list[int]:
        """Seed the choice of stages; the list of seeds used."""
        if seed is None:
            return []
        self.np_random.seed(seed)
        return [seed]

    def _choose(self, seed: int | None, options: dict[str, Any] | None) -> Any:
        self.seed(seed)
        stages = options["stages"] if options is not None and "stages" in options else self.stages
        world, stage = draw_stage(self.np_random, stages)
        self.env = self.envs[world][stage]
        return self.env

    def close(self) -> None:
        """Close all of them; a second time is an error."""
        if self.env is None:
            raise ValueError("env has already been closed.")
        for world in self.envs:
            for env in world:
                env.close()
        self.env = None

    def get_keys_to_action(self) -> dict[tuple[int, ...], int]:
        """Sorted keyboard keys to the byte of buttons they press."""
        keys: dict[tuple[int, ...], int] = self.env.get_keys_to_action()
        return keys

    def get_action_meanings(self) -> list[str]:
        meanings: list[str] = self.env.get_action_meanings()
        return meanings
