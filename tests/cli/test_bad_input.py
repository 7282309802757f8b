"""Whatever is wrong is said in one sentence with status 2, before anything is written."""

from __future__ import annotations

from pathlib import Path

import pytest

from warpzone.cli.main import main

SMALL = ["--preset", "cpu", "--device", "cpu", "--total-updates", "1", "--no-record-video"]

REFUSED: dict[str, tuple[list[str], str]] = {
    "a stage that does not exist": (["--stage", "7"], "There is no stage '1-7'"),
    "a stage name that does not exist": (["--stages", "1-1,9-9"], "There is no stage '9-9'"),
    "a stage of another world": (["--world", "2", "--stage", "4-4"], "leave --world 2 out"),
    "a span past the last stage": (["--world", "8", "--stage-span", "9"], "does not fit"),
    "zero environments": (["--num-envs", "0"], "warpzone: --num-envs must be at least 1"),
    "an odd number of environments in two halves": (["--num-envs", "7", "--double-buffer"], "even number"),
    "a batch that does not divide": (["--minibatch-size", "100"], "does not divide"),
    "a missing ROM": (["--rom", "/nowhere/smb.nes"], "There is no ROM at /nowhere/smb.nes"),
    "a name that is a path": (["--run-name", "../up"], "use a plain folder name"),
    "a device that is not there": (["--device", "cuda:77"], "CUDA"),
    "a device of another kind": (["--device", "tpu"], "Unknown device 'tpu'"),
    "replay without gradients for it": (["--learner", "native", "--per"], "has no replay"),
    "memory without gradients for it": (["--learner", "native", "--recurrent-type", "gru"], "no memory"),
    "lag without V-trace": (["--overlap-collect", "--algo", "ppo"], "only V-trace corrects"),
    "timing in a deterministic run": (["--deterministic", "--overlap-collect"], "depends on timing"),
    "a script of unknown buttons": (["--scripted-sequence", "FIRE:8"], "Unknown button 'FIRE'"),
    "a script without frames": (["--scripted-sequence", "RIGHT"], "BUTTONS:FRAMES"),
    "an action that does not exist": (["--forward-action-id", "7"], "There is no action 7"),
    "seven environments": (["--num-envs", "7"], "--num-envs 8 works"),
    "another name for a flag": (["--lr", "1e-3"], "did you mean --learning-rate?"),
    "stages without a name": (["--stages", ""], "--stages needs a value: STAGES."),
    "a fraction for a whole number": (["--total-steps", "1.5"], "whole number such as 64 or 1e6, not '1.5'"),
    "a word for a number": (
        ["--num-envs", "many"],
        "--num-envs takes a whole number such as 64 or 1e6, not 'many'",
    ),
    "a rate above one": (["--until-clear-rate", "95"], "--until-clear-rate must be from 0 to 1"),
    "a negative seed": (["--seed", "-1"], "seed must be at least 0"),
    "a negative limit": (["--total-updates", "-1"], "--total-updates must be at least 0"),
    "no checkpoint to resume": (["--resume", "latest"], "has no intact checkpoint"),
    "a run to resume that is not there": (["--resume", "nowhere"], "looked for nowhere and runs/nowhere"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_train_refuses(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    flags, sentence = REFUSED[what]
    monkeypatch.chdir(tmp_path)
    assert main(["train", *SMALL, *flags]) == 2
    said = capsys.readouterr().err.strip()
    assert sentence in said
    assert said.startswith("warpzone: ")
    assert "\n" not in said
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_preset_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "--preset", "tpu"]) == 2
    assert capsys.readouterr().err == "warpzone: Unknown preset 'tpu': choose auto, cpu or gpu.\n"


def test_a_file_that_is_no_rom_leaves_no_run_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("game.nes").write_bytes(b"no cartridge")
    with pytest.warns(UserWarning, match="not a known dump"):
        assert main(["train", *SMALL, "--rom", "game.nes"]) == 2
    assert capsys.readouterr().err.startswith("warpzone: The ROM")
    assert not Path("runs").exists()


def test_a_run_folder_that_cannot_be_written_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Permissions do not hold root back; a regular file in the way holds back everyone.
    (tmp_path / "file").touch()
    assert main(["train", *SMALL, "--runs-dir", str(tmp_path / "file" / "runs")]) == 2
    said = capsys.readouterr().err
    assert "can't be written" in said
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        (["eval", "--checkpoint", "nowhere"], "There is no checkpoint or run 'nowhere'"),
        (["eval", "--checkpoint", ""], "no intact checkpoint"),
        (["eval", "--episodes", "0"], "--episodes must be at least 1"),
        (["eval", "--mode", "drunk"], "Unknown mode 'drunk'"),
        (["eval", "--seed", "-1"], "--seed must be at least 0"),
        (["explore", "--seed", "-1"], "--seed must be at least 0"),
        (["record", "--checkpoint", "nowhere"], "There is no checkpoint or run 'nowhere'"),
        (["record", "--out", "film.avi"], "--out must end in .mp4 or .gif"),
        (["record", "--montage", "grid.avi"], "--montage must end in .mp4 or .gif"),
        (["record", "--montage", "grid.mp4", "--tries", "0"], "--tries must be at least 1"),
        (["record", "--montage", "a.mp4", "--greedy", "--scale", "4"], "leave --greedy and --scale out."),
        (["eval", "--out", "results.txt"], "--out ends in .json, .md or .png"),
        (["record", "--replay", "nowhere.json"], "The replay nowhere.json can't be read"),
        (["play", "--stage", "9-9"], "There is no stage '9-9'"),
        (["play", "--port", "70000"], "--port is a number from 0 to 65535"),
        (["play", "--host", "0.0.0.0"], "lets others reach the page"),
        (["play", "--host", "0.0.0.0", "--token", "correct horse battery"], "may consist of letters"),
        (["play", "--rom", "nowhere.nes"], "There is no ROM at nowhere.nes"),
        (["play", "--start", "nowhere.json"], "The replay nowhere.json can't be read"),
        (
            ["report", "nowhere"],
            "There is no checkpoint or run 'nowhere' (looked for nowhere and runs/nowhere)",
        ),
        (["report"], "name at least one run"),
        (["export", "nowhere", "--temperature", "0"], "--temperature is a number above 0, not 0.0."),
        (["eval", "--temperature", "-1"], "--temperature is a number above 0, not -1.0."),
        (["export", "nowhere"], "There is no checkpoint or run 'nowhere'"),
        (["control", "nowhere", "pause"], "There is no checkpoint or run 'nowhere'"),
        (["eval", "--checkpoint", "runs/a/best.pt"], "There is no checkpoint or run 'runs/a/best.pt'"),
        (["checkpoints", "inspect", "nowhere.pt"], "There is no checkpoint or run 'nowhere.pt'"),
        (["checkpoints", "list", "--runs-dir", "nowhere"], "There is no folder nowhere"),
        (["checkpoints", "lits"], "choose list, inspect"),
        (["eval", "--episode", "3"], "did you mean --episodes?"),
        (["bench", "nowhere"], "There is no command 'warpzone bench nowhere': choose env"),
        (["export"], "warpzone export needs RUN; see warpzone export -h."),
        (["checkpoints", "widen", "a"], "warpzone checkpoints widen needs --action-type and --out; see"),
        (
            ["levels", "generate", "--count", "2", "--out", "two.json"],
            "--out two.json is a file, for one level: give 2 levels a folder.",
        ),
        (["levels", "show", "9-9"], "There is no stage 9-9: stages are 1-1 to 8-4."),
        (["eval", "stray"], "warpzone eval has no use for 'stray': did you mean --checkpoint stray?"),
        (["eval", "1-1"], "warpzone eval has no use for '1-1': did you mean --stages 1-1?"),
        (["play", "1-2"], "warpzone play has no use for '1-2': did you mean --stage 1-2?"),
        (["eval", "-n"], "warpzone eval has no use for '-n': see warpzone eval -h."),
        (["bench", "replay", "--size", "8"], "--size takes INT INT, not '8'"),
        (["eval", "--episodes"], "--episodes needs a value: INT."),
        (["eval", "--stages", "--greedy"], "--stages needs a value: STAGES."),
        (["eval", "--stages="], "--stages needs a value: STAGES."),
        (["record", "--stage", ""], "--stage needs a value: STAGE."),
        (["info", "weather"], "TOPIC takes {installation,presets}, not 'weather'"),
        (["nowhere"], "there is no command 'nowhere'"),
        (["trian"], "did you mean train?"),
    ],
)
def test_the_other_commands_refuse(
    argv: list[str],
    sentence: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(argv) == 2
    said = capsys.readouterr().err.strip()
    assert sentence in said
    assert "\n" not in said
    assert list(tmp_path.iterdir()) == []
