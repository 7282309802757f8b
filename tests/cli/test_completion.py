"""Completion scripts know the commands, their flags and the flags' values."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from warpzone.cli.commands import COMMANDS
from warpzone.cli.completion import script
from warpzone.cli.main import main


def test_bash_completes_commands_flags_and_values() -> None:
    if shutil.which("bash") is None:
        pytest.skip("there is no bash")
    text = script("bash")
    for typed, answer in (
        ("wat", "watch"),
        ("watch --po", "--port"),
        ("checkpoints li", "list"),
        ("checkpoints prune --dr", "--dry-run"),
        ("train --preset cp", "cpu"),
    ):
        words = ["warpzone", *typed.split()]
        ask = f"COMP_WORDS=({' '.join(words)}); COMP_CWORD={len(words) - 1}; _tyro_warpzone; echo ${{COMPREPLY[@]}}"
        done = subprocess.run(["bash", "-c", f"{text}\n{ask}"], capture_output=True, text=True, check=True)
        assert done.stdout.split() == [answer], typed


def test_all_commands_are_in_every_script(capsys: pytest.CaptureFixture[str]) -> None:
    for shell in ("zsh", "fish"):
        text = script(shell)
        assert all(command in text for command in COMMANDS)
    assert main(["completion", "tcsh"]) == 2
    assert "choose bash, zsh, fish" in capsys.readouterr().err
