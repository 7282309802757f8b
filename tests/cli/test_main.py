"""The command finds its subcommands quickly and ends with the documented statuses."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from warpzone.cli import main as cli
from warpzone.cli.commands import as_given
from warpzone.errors import RomError


def with_command(monkeypatch: pytest.MonkeyPatch, action: Any) -> None:
    monkeypatch.setitem(cli.COMMANDS, "act", "for a test")
    monkeypatch.setitem(sys.modules, "warpzone.cli.act", SimpleNamespace(run=action))  # type: ignore[arg-type]


def raising(error: BaseException) -> Any:
    def run(argv: list[str]) -> int:
        raise error

    return run


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (RomError("There is no ROM."), 2, "warpzone: There is no ROM.\n"),
        (KeyboardInterrupt(), 130, "warpzone: interrupted\n"),
        (KeyboardInterrupt(signal.SIGTERM), 143, "warpzone: interrupted\n"),
        (BrokenPipeError(), 0, ""),
    ],
)
def test_what_a_command_raises_becomes_a_status_and_a_sentence(
    error: BaseException,
    code: int,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with_command(monkeypatch, raising(error))
    assert cli.main(["act"]) == code
    assert capsys.readouterr().err == said


def test_a_setting_is_named_as_it_was_given() -> None:
    sentence, rest = "num_envs must be at least 1, not 0.", " must be at least 1, not 0."
    assert as_given(sentence, ["train", "--num_envs=0"], {}) == f"--num-envs{rest}"
    assert as_given(sentence, ["master", "--train-flags=--num-envs 0"], {}) == f"--num-envs{rest}"
    assert as_given(sentence, ["train"], {"WARPZONE_NUM_ENVS": "0"}) == f"WARPZONE_NUM_ENVS{rest}"
    assert as_given(sentence, ["train"], {}) == sentence
    for other in ("out can't be written: choose another --out.", "There is no stage '9-9'."):
        assert as_given(other, ["record", "--out", "out"], {}) == other


def test_an_error_of_ours_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    with_command(monkeypatch, raising(ZeroDivisionError()))
    with pytest.raises(ZeroDivisionError):
        cli.main(["act"])


@pytest.mark.parametrize("argv", [[], ["-h"], ["--help"]])
def test_help_lists_every_command(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(argv) == 0
    shown = capsys.readouterr().out
    assert all(f"  {name} " in shown for name in cli.COMMANDS)


def test_version_is_the_package_version(capsys: pytest.CaptureFixture[str]) -> None:
    from warpzone import __version__

    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out == f"{__version__}\n"


BENCHMARKS = ["env", "train", "overlap", "replay"]
SUBCOMMANDS = [[name] for name in cli.COMMANDS if name not in ("bench", "info")]
SUBCOMMANDS += [["bench", name] for name in BENCHMARKS]
SUBCOMMANDS += [["checkpoints", name] for name in ("list", "inspect", "backfill", "prune")]


@pytest.mark.parametrize("argv", [*SUBCOMMANDS, ["info"], ["bench"]], ids=" ".join)
def test_every_subcommand_explains_itself(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    try:
        code = cli.main([*argv, "-h"])
    except SystemExit as leaving:
        code = int(leaving.code or 0)
    assert code == 0
    shown = capsys.readouterr().out
    assert f"warpzone {' '.join(argv)}" in shown
    assert len(shown.splitlines()) > 5


@pytest.mark.skipif(Path("/dev/nvidiactl").exists(), reason="torch is asked about the GPU")
@pytest.mark.parametrize(
    "argv", [["train", "-h"], ["train", "--lr", "1"], ["train", "--dry-run"]], ids=" ".join
)
def test_nobody_waits_for_torch_before_there_is_something_to_train(argv: list[str], tmp_path: Path) -> None:
    code = f"""
import sys
from warpzone.cli.main import main
try:
    main({argv!r})
except SystemExit:
    pass
sys.exit("torch" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
