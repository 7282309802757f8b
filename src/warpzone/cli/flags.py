"""Flags from dataclasses: the command line first, then environment variables of the same names, then defaults."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import tyro

from warpzone.errors import ConfigError, Error

T = TypeVar("T")
_TRUE, _FALSE = {"1", "true", "yes", "on"}, {"0", "false", "no", "off"}


def parse(
    default: T, argv: list[str], prog: str, description: str, environ: Mapping[str, str] | None = None
) -> T:
    """The settings in `default`, changed by environment variables and then by flags."""
    default = with_environment(default, os.environ if environ is None else environ)
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            return tyro.cli(
                type(default),
                args=argv,
                default=default,
                prog=prog,
                description=description,
                config=(tyro.conf.OmitArgPrefixes, tyro.conf.OmitSubcommandPrefixes),
            )
    except SystemExit as leaving:
        # What a setting refuses is a sentence of ours; around it tyro puts a frame.
        refusal = _ours(leaving)
        if refusal is not None:
            raise refusal from None
        sys.stderr.write(said.getvalue())
        raise


def _ours(error: BaseException | None) -> Error | None:
    while error is not None and not isinstance(error, Error):
        error = error.__cause__ or error.__context__
    return error


def with_environment(settings: T, environ: Mapping[str, str]) -> T:
    """Set every field that has an environment variable of its name in capitals."""
    assert dataclasses.is_dataclass(settings)
    assert not isinstance(settings, type)
    kinds = get_type_hints(type(settings))
    changes: dict[str, Any] = {}
    for f in dataclasses.fields(settings):
        value = getattr(settings, f.name)
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            changes[f.name] = with_environment(value, environ)
        elif (text := environ.get(f.name.upper())) is not None:
            changes[f.name] = _convert(f.name.upper(), text, kinds[f.name])
    return dataclasses.replace(settings, **changes)


def _convert(name: str, text: str, kind: Any) -> Any:
    """The text as a value of a field's kind."""
    kinds = [k for k in get_args(kind) if k is not type(None)] if type(None) in get_args(kind) else [kind]
    for one in kinds:
        with contextlib.suppress(ValueError):
            return _converted(text, one)
    shown = " or ".join(getattr(k, "__name__", str(k)) for k in kinds)
    if get_origin(kinds[0]) is Literal:
        shown = ", ".join(map(str, get_args(kinds[0])))
    raise ConfigError(f"The environment variable {name}={text!r} is not a value for it ({shown}).")


def _converted(text: str, kind: Any) -> Any:
    if kind is bool:
        if text.lower() not in _TRUE | _FALSE:
            raise ValueError(text)
        return text.lower() in _TRUE
    if kind is int:
        return int(text, 0)
    if kind in (float, Path):
        return kind(text)
    if get_origin(kind) is tuple:
        return tuple(int(part) for part in text.replace("x", " ").replace(",", " ").split())
    if get_origin(kind) is Literal and text not in get_args(kind):
        raise ValueError(text)
    return text
