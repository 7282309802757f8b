"""The errors a user can cause. Each message is one sentence: what is wrong and what to do."""

import difflib
import math
from collections.abc import Iterable


class Error(Exception):
    """Anything the user can fix. The command line prints the message and exits with status 2."""


class RomError(Error):
    """The cartridge image is missing, damaged or of a kind the engine does not run."""


class ConfigError(Error, ValueError):
    """A setting is out of range or contradicts another."""


class CheckpointError(Error):
    """A checkpoint or snapshot is damaged, foreign or does not fit."""


class ClusterError(Error):
    """Machines that a run needs are gone, or do not answer."""


class HeadLost(ClusterError):
    """The head of the Ray cluster is gone; Ray now ends this process within a minute."""


def require(
    config: object, *names: str, at_least: float | None = None, above: float | None = None, at_most: float = math.inf
) -> None:  # fmt: skip
    """Raise ConfigError for the first of these settings that is out of range."""
    for name in names:
        value = getattr(config, name)
        if (at_least is None or value >= at_least) and (above is None or value > above) and value <= at_most:
            continue
        least = f"at least {at_least}" if above is None else f"above {above}"
        wanted = least if at_most == math.inf else f"from {at_least} to {at_most}"
        raise ConfigError(f"{name} must be {wanted}, not {value!r}.")


def nearest(word: str, known: Iterable[str]) -> str | None:
    """What was probably meant: by its initials (lr for learning-rate), as a part of it, or with a typing error."""
    names = list(known)
    plain = word.lower().strip("-").replace("_", "-")
    # Other flags have these initials too.
    names.sort(key=lambda name: not name.endswith("learning-rate"))
    for name in names:
        parts = name.lower().strip("-").replace("_", "-").split("-")
        if len(plain) > 1 and plain == "".join(part[:1] for part in parts):
            return name
    close = difflib.get_close_matches(word, names, n=1, cutoff=0.75)
    within = sorted((name for name in names if plain in name.lower().replace("_", "-").split("-")), key=len)
    return next(iter([*close, *within, *difflib.get_close_matches(word, names, n=1)]), None)
