"""The JSON beside a checkpoint: what the file is, what wrote it, and the digest that verifies it.

While a checkpoint is being replaced its sidecar describes two files, the new one and (under `previous`) the old
one. Whichever of the two a reader finds, size and digest tell which description is its own.
"""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from typing import Any

from warpzone.envs.nes_py.patches import installed
from warpzone.errors import CheckpointError
from warpzone.watch.jsonl import plain

SCHEMA_VERSION = 1
MAX_SIDECAR_BYTES = 16 * 1024 * 1024
STEP_SOURCE = "reconstructed_step_source"
"""Key of a sidecar that records how its `global_step` was reconstructed."""

Json = dict[str, Any]


@dataclass(frozen=True)
class CheckpointMeta:
    """The metadata of one checkpoint."""

    global_step: int = 0
    """Environment steps taken, all environments together."""
    global_update: int = 0
    """Learner updates made."""
    config: Json = field(default_factory=dict)
    """The resolved configuration of the run, as JSON."""
    clear_rate: dict[str, float] = field(default_factory=dict)
    """Share of recent episodes that reached the flag, per stage."""
    fresh_clear_rate: dict[str, float] = field(default_factory=dict)
    """Clear rates on fresh episodes, if this very policy was evaluated on every stage."""
    architecture: Json = field(default_factory=dict)
    """What the weights' shapes depend on. A checkpoint of another architecture is refused."""
    rom_sha256: str | None = None
    """Digest of the cartridge image that the agent learned on."""
    save_index: int = 0
    """Number of the save within the run: the newest is known without trusting a clock."""
    created_unix_s: float = 0.0
    versions: dict[str, str] = field(default_factory=dict)
    """Software that wrote the checkpoint."""
    extra: Json = field(default_factory=dict)
    """Anything else."""

    @property
    def clear_rate_mean(self) -> float | None:
        return sum(self.clear_rate.values()) / len(self.clear_rate) if self.clear_rate else None


@dataclass(frozen=True)
class Description:
    """One file as its sidecar describes it; size and digest are None in layouts that recorded none."""

    meta: CheckpointMeta
    size: int | None
    sha256: str | None


def sidecar_bytes(new: Description, previous: tuple[Description, ...] = ()) -> bytes:
    document = _to_json(new)
    if previous:
        document["previous"] = [_to_json(one) for one in previous]
    return (json.dumps(document, indent=2, allow_nan=False) + "\n").encode()


def parse_sidecar(data: bytes, name: str) -> tuple[Description, ...]:
    """The descriptions in a sidecar, the new one first. Raises CheckpointError if it is not sound."""
    document = parse_json(data, name)
    previous = document.pop("previous", [])
    if not isinstance(previous, list) or not all(isinstance(one, dict) for one in previous):
        raise _damaged(name, "previous", previous)
    return tuple(described(migrate(one, name), name) for one in (document, *previous))


def parse_json(data: bytes, name: str) -> Json:
    try:
        document = json.loads(data.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{name} is not valid JSON; restore it or choose another checkpoint") from error
    if not isinstance(document, dict):
        raise CheckpointError(f"{name} is not a JSON object; restore it or choose another checkpoint")
    return document


def migrate(document: Json, name: str) -> Json:
    """The same description in the present schema."""
    version = document.get("schema_version", 0)
    if not isinstance(version, int) or isinstance(version, bool) or version < 0:
        raise _damaged(name, "schema_version", version)
    if version > SCHEMA_VERSION:
        raise CheckpointError(
            f"{name} has schema version {version} and this version knows {SCHEMA_VERSION}; update warpzone"
        )
    return document if version else _from_seed_layout(document)


def step_counts(document: Json) -> Json:
    """The object that holds `global_step` and `global_update`: the top or, in the seed's layout, `save_state`."""
    nested = document.get("save_state")
    return nested if isinstance(nested, dict) else document


def find_setting(document: Json, name: str) -> int | None:
    """A positive whole number called `name` at the top or one or two objects below it."""
    level = [document]
    for _ in range(3):
        for one in level:
            value = one.get(name)
            if isinstance(value, int) and not isinstance(value, bool) and value > 0:
                return value
        level = [below for one in level for below in one.values() if isinstance(below, dict)]
    return None


def _from_seed_layout(document: Json) -> Json:
    counts = step_counts(document)
    known = {"global_step", "global_update", "save_state", "config", STEP_SOURCE}
    config = document.get("config")
    settings = {key: value for key, value in document.items() if key not in known}
    return {
        "schema_version": 1,
        "global_step": counts.get("global_step", 0),
        "global_update": counts.get("global_update", 0),
        "config": config if isinstance(config, dict) else settings,
        "extra": {key: document[key] for key in (STEP_SOURCE,) if key in document},
    }


@lru_cache(maxsize=1)
def software_versions() -> dict[str, str]:
    """Versions of the software a checkpoint may depend on; missing packages are left out."""
    packages = ("warpzone", "torch", "numpy", "gymnasium", "nes-py", "gym-super-mario-bros")
    versions = {package: version for package in packages if (version := installed(package))}
    return {"python": platform.python_version(), "platform": platform.platform(), **versions}


def _to_json(description: Description) -> Json:
    meta, size, sha256 = description.meta, description.size, description.sha256
    return {
        "schema_version": SCHEMA_VERSION,
        **asdict(meta),
        **{name: plain(getattr(meta, name)) for name in ("config", "architecture", "extra")},
        "clear_rate_mean": meta.clear_rate_mean,
        "created_unix_s": meta.created_unix_s or time.time(),
        "versions": meta.versions or software_versions(),
        "file": None if size is None else {"size": size, "sha256": sha256},
    }


def described(document: Json, name: str) -> Description:
    """The description in a document of the present schema. Raises CheckpointError if it is not sound."""

    def get(key: str, kinds: type | tuple[type, ...], default: Any) -> Any:
        value = document.get(key, default)
        if not isinstance(value, kinds) or isinstance(value, bool):
            raise _damaged(name, key, value)
        return value

    def count(key: str) -> int:
        value: int = get(key, int, 0)
        if value < 0:
            raise _damaged(name, key, value)
        return value

    meta = CheckpointMeta(
        global_step=count("global_step"),
        global_update=count("global_update"),
        config=get("config", dict, {}),
        clear_rate=_mapping(get("clear_rate", dict, {}), (int, float), f"{name}: clear_rate"),
        fresh_clear_rate=_mapping(
            get("fresh_clear_rate", dict, {}), (int, float), f"{name}: fresh_clear_rate"
        ),
        architecture=get("architecture", dict, {}),
        rom_sha256=get("rom_sha256", (str, type(None)), None),
        save_index=count("save_index"),
        created_unix_s=get("created_unix_s", (int, float), 0.0),
        versions=_mapping(get("versions", dict, {}), (str,), f"{name}: versions"),
        extra={**{k: document[k] for k in (STEP_SOURCE,) if k in document}, **get("extra", dict, {})},
    )
    file = get("file", (dict, type(None)), None)
    if file is None:
        return Description(meta, None, None)
    size, sha256 = file.get("size"), file.get("sha256")
    if not isinstance(size, int) or not isinstance(sha256, str):
        raise _damaged(name, "file", file)
    return Description(meta, size, sha256)


def _mapping(value: Mapping[str, Any], kinds: tuple[type, ...], name: str) -> dict[str, Any]:
    for key, item in value.items():
        if not isinstance(item, kinds) or isinstance(item, bool):
            raise _damaged(name, key, item)
    return dict(value)


def _damaged(name: str, key: str, value: object) -> CheckpointError:
    shown = repr(value)
    return CheckpointError(
        f"{name} is damaged: {key} is {shown if len(shown) <= 40 else shown[:37] + '...'}; "
        "restore it or choose another checkpoint"
    )
