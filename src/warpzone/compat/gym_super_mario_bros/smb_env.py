"""Super Mario Bros and the Lost Levels, with the interface of gym-super-mario-bros 7."""

from __future__ import annotations

from warpzone.compat.mario import Mario
from warpzone.compat.nes_py.nes_env import NESEnv


class SuperMarioBrosEnv(Mario, NESEnv):
    """The whole game, or the stage `target=(world, stage)`. Ready to be stepped, as after `reset()`."""

    reward_range = Mario.reward_range

    def __init__(
        self, rom_mode: str = "vanilla", lost_levels: bool = False, target: tuple[int, int] | None = None
    ) -> None:
        self._start_game(rom_mode, lost_levels, target)


__all__ = ["SuperMarioBrosEnv"]
