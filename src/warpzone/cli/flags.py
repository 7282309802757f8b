"""Flags from dataclasses: the command line first, then environment variables of the same names, then defaults."""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import inspect
import io
import os
import re
import sys
from collections import ChainMap
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import tyro

from warpzone.cli.help import METAVARS, as_text, help_text
from warpzone.errors import ConfigError, Error, nearest

T = TypeVar("T")
PREFIX = "WARPZONE_"
SEED_NAMES = {
    "RUN_NAME": "run_name",
    "ACTION_TYPE": "action_type",
    "REWARD_DISTANCE_WEIGHT": "reward_distance_weight",
    "REWARD_SCALE_START": "reward_scale_start",
    "REWARD_SCALE_FINAL": "reward_scale_final",
    "REWARD_SCALE_ANNEAL_STEPS": "reward_scale_anneal_steps",
    "SCRIPTED_SEQUENCE": "scripted_sequence",
    "SCRIPTED_FORWARD_FRAMES": "scripted_forward_frames",
    "PROBE_FORWARD": "probe_forward_actions",
    "FORWARD_ACTION_ID": "forward_action_id",
    "ENABLE_RAM_X_PARSE": "enable_ram_x_parse",
    "RAM_X_HIGH": "ram_x_high_addr",
    "RAM_X_LOW": "ram_x_low_addr",
}
"""Names of the seed system that work without the prefix, and the flags they set."""
SWITCHES = {
    "AUTO_MEM": "1: reduce memory use step by step if memory runs out at the start",
    "MARIO_ALLOW_CPU_AUTO": "1: let `--device auto` train a GPU-sized network on a CPU",
    "MARIO_SHAPING_DEBUG": "1: print `[reward][warn] dx_missed` when no environment moves forward",
    "MARIO_PER_FP16_SCALARS": "0: keep the replay's scalars in float32",
    "MARIO_SUPPRESS_FC_STAGE_WARN": "1: do not warn about a stage that a backend can't start",
    "MARIO_FC_STRICT_STAGE": "1: such a stage is an error",
    "WARPZONE_ROM": "path of the ROM, also in Python",
    "WARPZONE_PORTABLE": "no effect any more: every build runs on every processor of its architecture",
    "WARPZONE_SIMD": "instruction set of the engine: baseline, avx2, avx512, neon or dotprod",
    "WARPZONE_FUZZ_SECONDS": "seconds that the engine's fuzz test runs",
    "WARPZONE_FUZZ_SEED": "seed of the engine's fuzz test",
}
"""Variables that are no flags."""
TRUE, FALSE = {"1", "true", "yes", "on"}, {"0", "false", "no", "off"}
_WORDS: dict[Any, str] = {int: "a whole number such as 64 or 1e6", float: "a number", bool: "1 or 0"}
_HELP = ("-h", "--help", "--help-all")


@dataclasses.dataclass(frozen=True)
class Flag:
    """One setting as a flag of a command."""

    field: str
    part: str
    """The part of the settings that it belongs to, such as learn; empty where there are no parts."""
    kind: Any
    default: Any
    owner: type
    """The dataclass that it is a field of."""
    is_positional: bool = False

    @property
    def name(self) -> str:
        return "--" + self.field.replace("_", "-")

    @property
    def help(self) -> str:
        """The string under the field. Reading the source takes a while, so only help does."""
        return field_docs(self.owner).get(self.field, "")

    @property
    def is_required(self) -> bool:
        return self.default is tyro.MISSING

    @property
    def variable(self) -> str:
        return PREFIX + self.field.upper()

    @property
    def kinds(self) -> list[Any]:
        """What its value may be, other than nothing."""
        alone = get_origin(self.kind) in (None, Literal, tuple)
        return [self.kind] if alone else [k for k in get_args(self.kind) if k is not type(None)]

    @property
    def usage(self) -> str:
        """The flag and its value, such as `--num-envs INT`, or its place, such as `[RUN]`."""
        if self.is_positional:
            word = self.metavar if get_origin(self.kind) is Literal else self.field.upper()
            word += " ..." * (get_origin(self.kind) is tuple)
            return word if self.is_required else f"[{word}]"
        if self.kind is bool:
            return f"--[no-]{self.name[2:]}"
        return f"{self.name} {self.metavar}"

    @property
    def row(self) -> tuple[str, str]:
        """Usage and explanation, for help."""
        if self.is_required:
            return self.usage, self.help + " (required)" * (not self.is_positional)
        is_plain = self.default in ("", None, False, ())
        return self.usage, self.help if is_plain else f"{self.help} (default: {as_text(self.default)})"

    @property
    def metavar(self) -> str:
        if str in self.kinds and self.field in METAVARS:
            return METAVARS[self.field]
        if Path in self.kinds:
            return "DIR" if isinstance(self.default, Path) and not self.default.suffix else "FILE"
        if get_origin(self.kinds[0]) is Literal:
            return "{" + ",".join(map(str, get_args(self.kinds[0]))) + "}"
        if get_origin(self.kinds[0]) is tuple:
            return " ".join(kind.__name__.upper() for kind in get_args(self.kinds[0]))
        return "|".join(kind.__name__.upper() for kind in self.kinds)

    def from_text(self, text: str, name: str) -> Any:
        """The text as a value; `name` is of the flag or the variable that gave it."""
        for kind in self.kinds:
            with contextlib.suppress(ValueError):
                return _converted(text, kind)
        takes = " or ".join(_WORDS.get(kind, self.metavar) for kind in self.kinds)
        raise ConfigError(f"{name} takes {takes}, not {text!r}.")


def flags_of(settings: object, part: str = "") -> list[Flag]:
    """Every flag of a settings dataclass, given with its defaults, in the order of its fields."""
    assert dataclasses.is_dataclass(settings)
    plain, marked = get_type_hints(type(settings)), get_type_hints(type(settings), include_extras=True)
    found = []
    own = vars(type(settings))["__annotations__"]
    # Inherited flags come last.
    for f in sorted(dataclasses.fields(settings), key=lambda f: f.name not in own):
        value = getattr(settings, f.name)
        if dataclasses.is_dataclass(value):
            found += flags_of(value, f.name)
        else:
            positional = plain[f.name] != marked[f.name]
            found.append(Flag(f.name, part, plain[f.name], value, type(settings), positional))
    return found


@cache
def field_docs(kind: Any) -> dict[str, str]:
    """The strings under the fields of a dataclass, its own and those it inherits."""
    body = _classes(kind.__module__)[kind.__qualname__].body
    inherited = [field_docs(base) for base in kind.__bases__ if base is not object]
    return dict(ChainMap(*inherited)) | {
        ast.unparse(field.target): " ".join(str(ast.literal_eval(under.value)).split())
        for field, under in pairwise(body)
        if isinstance(field, ast.AnnAssign) and isinstance(under, ast.Expr)
    }


@cache
def _classes(module: str) -> dict[str, ast.ClassDef]:
    """The classes of a module by name, parsed once: `inspect.getsource` would search the file for each of them."""
    body = ast.parse(inspect.getsource(sys.modules[module])).body
    return {node.name: node for node in body if isinstance(node, ast.ClassDef)}


def blank(kind: type[T]) -> T:
    """The defaults of a settings dataclass; what has none is marked as missing."""
    required = [f.name for f in dataclasses.fields(kind) if f.default is f.default_factory]  # type: ignore[arg-type]
    return kind(**dict.fromkeys(required, tyro.MISSING))


def parse(default: T, argv: list[str], prog: str, environ: Mapping[str, str] | None = None) -> T:
    """The settings in `default`, changed by environment variables and then by flags."""
    default = with_environment(default, os.environ if environ is None else environ)
    if set(argv) & set(_HELP):
        print(command_help(default, prog))
        raise SystemExit(0)
    words = checked_words(default, argv, prog)
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            settings = tyro.cli(
                type(default), args=words, default=default, prog=prog,
                config=(tyro.conf.OmitArgPrefixes, tyro.conf.OmitSubcommandPrefixes),
            )  # fmt: skip
    except SystemExit as leaving:
        # What a setting refuses is a sentence of ours; around it tyro puts a frame.
        error: BaseException | None = leaving
        while error is not None and not isinstance(error, Error):
            error = error.__cause__ or error.__context__
        if error is not None:
            raise error from None
        sys.stderr.write(said.getvalue())
        raise
    if getattr(settings, "seed", 0) < 0:
        raise ConfigError("--seed must be at least 0.")
    return settings


def command_help(default: object, prog: str) -> str:
    """What a command does, its arguments and its flags."""
    flags = flags_of(default)
    words = [flag.row for flag in flags if flag.is_positional]
    groups = {"arguments": words} if words else {}
    groups["flags"] = [flag.row for flag in flags if not flag.is_positional]
    return help_text(" ".join([prog, *dict(words)]), inspect.getdoc(type(default)) or "", groups)


def meant_by(word: str) -> tuple[str, ...]:
    """Flags that a word without one may have been meant for."""
    is_stage = re.fullmatch(r"[1-8]-[1-4](,[1-8]-[1-4])*|all", word)
    return ("--stages", "--stage") if is_stage else () if word.startswith("-") else ("--checkpoint",)


def checked_words(default: object, argv: Sequence[str], prog: str) -> list[str]:
    """The words with whole numbers as tyro reads them. Refuses in a sentence what tyro refuses in a frame: unknown
    flags, wrong values, too few words or too many."""
    flags = flags_of(default)
    known = {flag.name: flag for flag in flags if not flag.is_positional}
    places = [flag for flag in flags if flag.is_positional]
    is_list = any(get_origin(flag.kind) is tuple for flag in places)
    words, loose, missing = iter(argv), [], {name for name, flag in known.items() if flag.is_required}
    plain: list[str] = []
    for word in words:
        name, equals, value = word.partition("=")
        name = name.replace("_", "-")
        plain.append(word)
        if not name.startswith("--"):
            loose.append(word)
            continue
        flag = known.get(name) or known.get(name.replace("--no-", "--", 1))
        if flag is None or (flag.name != name and flag.kind is not bool):
            near = nearest(name, known)
            hint = f"did you mean {near}?" if near else f"see {prog} --help-all."
            raise ConfigError(f"{prog} has no flag {name}: {hint}")
        missing.discard(name)
        if flag.kind is not bool:
            values = [value] if equals else list(islice(words, len(flag.metavar.split())))
            unset = values == [""] and flag.field in ("stage", "stages")
            if not values or unset or (values[0].startswith("--") and not equals):
                raise ConfigError(f"{name} needs a value: {flag.metavar}.")
            meant = flag.from_text(" ".join(values), name)
            if isinstance(meant, int):
                plain[-1] = f"{name}={meant}"
            elif not equals:
                plain += values
    needed = [*sorted(missing), *(flag.field.upper() for flag in places[len(loose) :] if flag.is_required)]
    if needed:
        raise ConfigError(f"{prog} needs {' and '.join(needed)}; see {prog} -h.")
    if len(loose) > len(places) and not is_list:
        word = loose[len(places)]
        near = next((flag for flag in meant_by(word) if flag in known), "")
        hint = f"did you mean {near} {word}?" if near else f"see {prog} -h."
        raise ConfigError(f"{prog} has no use for {word!r}: {hint}")
    for flag, word in zip(places, loose, strict=False):
        if get_origin(flag.kind) is not tuple:
            flag.from_text(word, flag.field.upper())
    return plain


def with_environment(settings: T, environ: Mapping[str, str]) -> T:
    """Set every field that has an environment variable: WARPZONE_ and its name, or one of the seed system's."""
    named = {field: name for name, field in SEED_NAMES.items() if name in environ}
    changes: dict[str, dict[str, Any]] = {}
    for flag in flags_of(settings):
        name = flag.variable if flag.variable in environ else named.get(flag.field)
        if name is not None and not flag.is_positional:
            value = flag.from_text(environ[name], f"The environment variable {name}")
            changes.setdefault(flag.part, {})[flag.field] = value
    own: dict[str, Any] = changes.pop("", {})
    parts = {part: dataclasses.replace(getattr(settings, part), **new) for part, new in changes.items()}
    return dataclasses.replace(settings, **own, **parts)  # type: ignore[type-var]


def given(field: str, argv: Sequence[str], environ: Mapping[str, str]) -> str | None:
    """What a flag will be, before all of them are parsed; None if it is not given."""
    names = [PREFIX + field.upper(), *(name for name, of in SEED_NAMES.items() if of == field)]
    value = next((environ[name] for name in names if name in environ), None)
    for at, word in enumerate(argv):
        flag, equals, text = word.partition("=")
        name, wanted = flag.replace("_", "-"), field.replace("_", "-")
        if name == f"--{wanted}":
            value = text if equals else next(iter(argv[at + 1 : at + 2]), "")
        elif name == f"--no-{wanted}":
            value = "false"
    return value


def _converted(text: str, kind: Any) -> Any:
    if kind is bool:
        if text.lower() not in TRUE | FALSE:
            raise ValueError(text)
        return text.lower() in TRUE
    if kind is int:
        if not re.fullmatch(r"\d+(\.\d+)?e\d+", text.lower()):
            return int(text, 0)
        if not float(text).is_integer():
            raise ValueError(text)
        return int(float(text))
    if kind in (float, Path):
        return kind(text)
    if get_origin(kind) is tuple:
        parts = text.replace("x", " ").replace(",", " ").split()
        return tuple(one(part) for one, part in zip(get_args(kind), parts, strict=True))
    if get_origin(kind) is Literal:
        values = {str(value): value for value in get_args(kind)}
        if text not in values:
            raise ValueError(text)
        return values[text]
    return text
