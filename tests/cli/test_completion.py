"""Completion scripts name the commands and flags there are."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from warpzone.cli.completion import flags, script
from warpzone.cli.main import COMMANDS, main


def test_flags_are_those_of_the_help() -> None:
    assert {"--runs-dir", "--host", "--port", "--token"} <= set(flags("watch"))


def test_bash_completes_a_command_and_a_flag(tmp_path: object) -> None:
    if shutil.which("bash") is None:
        pytest.skip("there is no bash")
    ask = "COMP_WORDS=(warpzone {0}); COMP_CWORD={1}; _warpzone; echo ${{COMPREPLY[@]}}"
    text = script("bash")
    for words, at, answer in (("wat", 1, "watch"), ("watch --po", 2, "--port")):
        done = subprocess.run(
            ["bash", "-c", f"{text}\n{ask.format(words, at)}"], capture_output=True, text=True, check=True
        )
        assert done.stdout.split() == [answer]


def test_all_commands_are_in_every_script(capsys: pytest.CaptureFixture[str]) -> None:
    for shell in ("zsh", "fish"):
        text = script(shell)
        assert all(command in text for command in COMMANDS)
    assert main(["completion", "tcsh"]) == 2
    assert "choose bash, zsh, fish" in capsys.readouterr().err
