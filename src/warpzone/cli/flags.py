"""Flags from dataclasses: the command line first, then environment variables of the same names, then defaults."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from typing import Any, TypeVar

import tyro

from warpzone.errors import ConfigError

T = TypeVar("T")
_TRUE, _FALSE = {"1", "true", "yes", "on"}, {"0", "false", "no", "off"}


def parse(
    default: T, argv: list[str], prog: str, description: str, environ: Mapping[str, str] | None = None
) -> T:
    """The settings in `default`, changed by environment variables and then by flags."""
    default = with_environment(default, os.environ if environ is None else environ)
    return tyro.cli(
        type(default),
        args=argv,
        default=default,
        prog=prog,
        description=description,
        config=(tyro.conf.OmitArgPrefixes, tyro.conf.OmitSubcommandPrefixes),
    )


def with_environment(settings: T, environ: Mapping[str, str]) -> T:
    """Set every field that has an environment variable of its name in capitals."""
    assert dataclasses.is_dataclass(settings)
    assert not isinstance(settings, type)
    changes: dict[str, Any] = {}
    for f in dataclasses.fields(settings):
        value = getattr(settings, f.name)
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            changes[f.name] = with_environment(value, environ)
        elif (text := environ.get(f.name.upper())) is not None:
            changes[f.name] = _convert(f.name.upper(), text, value, str(f.type))
    return dataclasses.replace(settings, **changes)


def _convert(name: str, text: str, value: Any, kind: str) -> Any:
    """The text as the kind of the value it replaces."""
    try:
        if isinstance(value, bool) or kind.startswith("bool"):
            if text.lower() in _TRUE | _FALSE:
                return text.lower() in _TRUE
            raise ValueError(text)
        if isinstance(value, int) or kind.startswith("int"):
            return int(text, 0)
        if isinstance(value, float) or kind.startswith("float"):
            return float(text)
        if isinstance(value, tuple):
            return tuple(int(part) for part in text.replace("x", " ").replace(",", " ").split())
    except ValueError:
        raise ConfigError(f"The environment variable {name}={text!r} is not a value for {kind}.") from None
    return text
