"""The layout: imports point one way, no two files import each other, no file is too long to read."""

from __future__ import annotations

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src"
LAYERS = (
    {"errors", "extras", "custom_code"},
    {"engine"},
    {"envs", "model", "compat", "levels"},
    {"learn", "collect", "watch", "checkpoints", "agents", "starts"},
    {"run"},
    {"master", "cluster", "api"},
    {"cli"},
)
"""A package may import its own layer and those before it."""
ALLOWED_UPWARD = {
    ("warpzone.api", "warpzone.cli.display"),  # the display of the command line, only if it is asked for
}


def modules() -> dict[str, Path]:
    found = {}
    for path in (SOURCE / "warpzone").rglob("*.py"):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports(name: str, path: Path, known: dict[str, Path]) -> set[str]:
    """The modules of ours that a file imports, at its top, in functions and for type checking."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                # The compiled module is nobody's file.
                if alias.name != "_native":
                    found.add(inner if inner in known else node.module)
    return {module for module in found if module in known and module != name}


@pytest.fixture(scope="module")
def graph() -> dict[str, set[str]]:
    known = modules()
    return {name: imports(name, path, known) for name, path in known.items()}


def test_no_files_import_each_other(graph: dict[str, set[str]]) -> None:
    # The package's own __init__ only names what is loaded on first use.
    graph = {name: found - {"warpzone"} for name, found in graph.items() if name != "warpzone"}
    try:
        order = list(TopologicalSorter(graph).static_order())
    except CycleError as error:
        pytest.fail(f"import cycle: {' -> '.join(error.args[1])}")
    assert "warpzone.run.loop" in order


def layer(module: str) -> int:
    package = module.split(".")[1]
    return next(i for i, names in enumerate(LAYERS) if package in names)


def test_imports_point_one_way(graph: dict[str, set[str]]) -> None:
    upward = {
        (name, other)
        for name, found in graph.items()
        for other in found
        if "warpzone" not in (name, other) and layer(other) > layer(name)
    }
    assert upward <= ALLOWED_UPWARD


def test_learning_knows_no_environments_and_the_engine_nothing_of_ours(graph: dict[str, set[str]]) -> None:
    for name, found in graph.items():
        if name.startswith("warpzone.learn"):
            assert not [other for other in found if other.startswith("warpzone.envs")], name
        if name.startswith("warpzone.engine"):
            assert not [o for o in found if not o.startswith(("warpzone.engine", "warpzone.errors"))], name


@pytest.mark.parametrize(
    ("folder", "endings", "most"), [("src", (".py",), 350), ("native", (".cpp", ".hpp"), 500)]
)
def test_no_file_is_too_long_to_read(folder: str, endings: tuple[str, ...], most: int) -> None:
    long = {
        str(path.relative_to(ROOT)): lines
        for path in (ROOT / folder).rglob("*")
        if path.suffix in endings and (lines := len(path.read_text().splitlines())) > most
    }
    assert long == {}
