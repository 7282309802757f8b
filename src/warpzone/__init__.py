"""Warpzone: trains reinforcement-learning agents to play Super Mario Bros on the NES."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from warpzone.errors import CheckpointError, ConfigError, Error, RomError
from warpzone.extras import what_to_install

if TYPE_CHECKING:
    from warpzone.api import Agent, load_agent, train
    from warpzone.engine import Machine
    from warpzone.engine.rom import rom
    from warpzone.envs.single import MarioEnv
    from warpzone.envs.vector import MarioVectorEnv
    from warpzone.run.loop import Outcome

__version__ = "0.1.0"
__all__ = [
    "Agent",
    "CheckpointError",
    "ConfigError",
    "Error",
    "Machine",
    "MarioEnv",
    "MarioVectorEnv",
    "Outcome",
    "RomError",
    "__version__",
    "load_agent",
    "rom",
    "train",
]

_LAZY = {
    "Agent": "warpzone.api",
    "load_agent": "warpzone.api",
    "train": "warpzone.api",
    "Outcome": "warpzone.run.loop",
    "Machine": "warpzone.engine",
    "rom": "warpzone.engine.rom",
    "MarioEnv": "warpzone.envs.single",
    "MarioVectorEnv": "warpzone.envs.vector",
    "compat": "warpzone.compat",
    "levels": "warpzone.levels",
}

if find_spec("gymnasium") is not None:
    from warpzone.envs.registration import register_all

    register_all()


def __getattr__(name: str) -> Any:
    """Load the heavier parts on first use, so that `import warpzone` and `warpzone -h` stay quick."""
    if name not in _LAZY:
        raise AttributeError(f"module 'warpzone' has no attribute {name!r}")
    try:
        module = import_module(_LAZY[name])
        return module if module.__name__ == f"warpzone.{name}" else getattr(module, name)
    except ModuleNotFoundError as error:
        sentence = what_to_install(error, f"warpzone.{name}")
        if sentence is None:
            raise
        raise ConfigError(sentence) from error
