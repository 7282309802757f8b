"""TensorBoard and W&B get the numbers; a folder that cannot be written is one warning."""

from __future__ import annotations

from pathlib import Path

import pytest

from warpzone.watch.metrics import complete_record
from warpzone.watch.tensorboard import open_tensorboard
from warpzone.watch.weights_and_biases import open_wandb

RECORD = complete_record({"update": 1, "global_step": 64, "entropy": 1.5, "clear_rate": {"1-1": 0.5}})


def test_tensorboard_has_the_start_mark_and_the_curves(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    log = open_tensorboard(tmp_path / "tensorboard")
    assert log is not None
    log(RECORD)
    log.close()
    log(RECORD)
    assert f"[train][log] tensorboard_log_dir={tmp_path / 'tensorboard'}" in capsys.readouterr().out
    events = accumulator.EventAccumulator(str(tmp_path / "tensorboard")).Reload()
    assert "meta/started/text_summary" in events.Tags()["tensors"]
    (entropy,) = events.Scalars("loss/entropy")
    assert (entropy.step, entropy.value) == (64, 1.5)
    assert events.Scalars("clear_rate/1-1")[0].value == 0.5


def test_a_folder_that_cannot_be_written_is_one_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    assert open_tensorboard(tmp_path / "file" / "tensorboard") is None
    out = capsys.readouterr().out
    assert out.count("[train][warn]") == 1
    assert len(out.splitlines()) == 1


@pytest.mark.slow
def test_wandb_offline_keeps_its_files_in_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    log = open_wandb("warpzone", run_name="demo", folder=tmp_path, config={"stage": "1-1"})
    log(RECORD)
    log.close()
    assert list((tmp_path / "wandb").glob("offline-run-*/*.wandb"))
