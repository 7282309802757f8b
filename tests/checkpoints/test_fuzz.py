"""Whatever the files hold, reading them gives a checkpoint or a CheckpointError, and runs and changes
nothing.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import pickle
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from warpzone.checkpoints.finding import find_resume
from warpzone.checkpoints.repairing import find_repairs
from warpzone.checkpoints.saving import load_checkpoint, save_checkpoint
from warpzone.checkpoints.sidecar import CheckpointMeta
from warpzone.errors import CheckpointError

STATE = {"w": torch.arange(64.0), "rng": b"\x01\x02", "n": [1, (2.5, None)]}
fuzz = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    meta = CheckpointMeta(global_update=3, clear_rate={"1-1": 0.5}, config={"a": {"b": 1}})
    return save_checkpoint(tmp_path / "checkpoints", "latest", STATE, meta)


def vouch_for(path: Path) -> None:
    """Make the sidecar fit the file, as someone who forges a checkpoint would."""
    sidecar = path.with_suffix(".json")
    document = json.loads(sidecar.read_text())
    data = path.read_bytes()
    document["file"] = {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    sidecar.write_text(json.dumps(document))


def load_or_refuse(path: Path) -> None:
    before = {p.name: p.read_bytes() for p in path.parent.iterdir()}
    with suppress(CheckpointError):
        load_checkpoint(path)
    assert {p.name: p.read_bytes() for p in path.parent.iterdir()} == before


@fuzz
@given(data=st.data())
def test_a_flipped_bit_or_a_cut_is_always_found(path: Path, data: st.DataObject) -> None:
    good = path.read_bytes()
    try:
        position = data.draw(st.integers(0, len(good) - 1))
        if data.draw(st.booleans()):
            path.write_bytes(good[:position])
        else:
            flipped = bytearray(good)
            flipped[position] ^= 1 << data.draw(st.integers(0, 7))
            path.write_bytes(flipped)
        with pytest.raises(CheckpointError, match="damaged"):
            load_checkpoint(path)
        assert find_resume(path.parent.parent) is None
    finally:
        path.write_bytes(good)


@pytest.mark.filterwarnings("ignore:Detected pickle protocol")
@fuzz
@given(data=st.data())
def test_a_damaged_file_that_its_sidecar_vouches_for_is_read_or_refused(
    path: Path, data: st.DataObject
) -> None:
    good = path.read_bytes()
    try:
        damaged = bytearray(good)
        for _ in range(data.draw(st.integers(1, 8))):
            damaged[data.draw(st.integers(0, len(good) - 1))] = data.draw(st.integers(0, 255))
        path.write_bytes(
            damaged[: data.draw(st.integers(0, len(good)))] if data.draw(st.booleans()) else damaged
        )
        vouch_for(path)
        load_or_refuse(path)
    finally:
        path.write_bytes(good)
        vouch_for(path)


json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=5,
)


@fuzz
@given(data=st.data())
def test_a_sidecar_with_wrong_types_is_read_or_refused(path: Path, data: st.DataObject) -> None:
    sidecar = path.with_suffix(".json")
    good = sidecar.read_text()
    try:
        document = json.loads(good)
        key = data.draw(st.sampled_from([*document, "previous", "save_state"]))
        document[key] = data.draw(json_values)
        sidecar.write_text(json.dumps(document))
        load_or_refuse(path)
        find_repairs(path.parent)
    finally:
        sidecar.write_text(good)


@fuzz
@given(junk=st.one_of(st.binary(max_size=200), json_values.map(lambda v: json.dumps(v).encode())))
def test_any_bytes_as_a_sidecar_are_read_or_refused(path: Path, junk: bytes) -> None:
    sidecar = path.with_suffix(".json")
    good = sidecar.read_bytes()
    try:
        sidecar.write_bytes(junk)
        load_or_refuse(path)
        find_repairs(path.parent)
    finally:
        sidecar.write_bytes(good)


def test_deep_nesting_is_refused(path: Path) -> None:
    path.with_suffix(".json").write_text("[" * 100_000)
    with pytest.raises(CheckpointError, match="not valid JSON"):
        load_checkpoint(path)


class Bomb:
    """Runs a command when it is unpickled."""

    def __init__(self, marker: Path) -> None:
        self._marker = marker

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (f"touch '{self._marker}'",)


def torch_archive(bomb: Any) -> bytes:
    buffer = io.BytesIO()
    torch.save({"w": torch.ones(1), "bomb": bomb}, buffer)
    return buffer.getvalue()


def old_torch_file(bomb: Any) -> bytes:
    buffer = io.BytesIO()
    torch.save({"bomb": bomb}, buffer, _use_new_zipfile_serialization=False)
    return buffer.getvalue()


def compressed_archive(bomb: Any) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", pickle.dumps(bomb))
        archive.writestr("archive/data/0", b"\0" * 10_000_000)
    return buffer.getvalue()


@pytest.mark.parametrize("make", [pickle.dumps, torch_archive, old_torch_file, compressed_archive])
def test_a_pickle_bomb_does_not_go_off(path: Path, tmp_path: Path, make: Any) -> None:
    marker = tmp_path / "went_off"
    path.write_bytes(make(Bomb(marker)))
    vouch_for(path)
    with pytest.raises(CheckpointError):
        load_checkpoint(path)
    assert not marker.exists()


def test_a_bomb_in_the_seed_layout_does_not_go_off_while_searching(tmp_path: Path) -> None:
    marker = tmp_path / "went_off"
    (tmp_path / "step_1.pt").write_bytes(torch_archive(Bomb(marker)))
    (tmp_path / "step_1.json").write_text('{"global_step": 0, "global_update": 0, "num_envs": 1}')
    assert find_resume(tmp_path, runs_folder=tmp_path, matching={}) is None
    assert find_repairs(tmp_path) == []
    assert not marker.exists()


@pytest.mark.parametrize("suffix", [".pt", ".json"])
def test_a_link_out_of_the_folder_is_neither_read_nor_written_through(
    path: Path, tmp_path: Path, suffix: str
) -> None:
    outside = tmp_path / f"outside{suffix}"
    link = path.with_suffix(suffix)
    outside.write_bytes(link.read_bytes())
    secret = outside.read_bytes()
    link.unlink()
    link.symlink_to(outside)
    with pytest.raises(CheckpointError, match="link out of its folder"):
        load_checkpoint(path)
    assert find_resume(tmp_path) is None

    save_checkpoint(path.parent, "latest", {"new": 1}, CheckpointMeta())
    assert outside.read_bytes() == secret
    assert load_checkpoint(path).state == {"new": 1}


def test_a_link_to_a_neighbour_is_read(path: Path) -> None:
    for suffix in (".pt", ".json"):
        (path.parent / f"best{suffix}").symlink_to(f"latest{suffix}")
    assert load_checkpoint(path.parent / "best.pt").meta.global_update == 3


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.pt").mkdir()
    (tmp_path / "a.json").write_text("{}")
    os.mkfifo(tmp_path / "b.pt")
    (tmp_path / "b.json").write_text("{}")
    for name in ("a", "b", "missing", "nul\0l"):
        with pytest.raises(CheckpointError):
            load_checkpoint(tmp_path / name)


@pytest.mark.parametrize("name", ["../latest", "", ".hidden", "a/b", "a b"])
def test_a_name_cannot_leave_the_folder(tmp_path: Path, name: str) -> None:
    with pytest.raises(CheckpointError, match="not a checkpoint name"):
        save_checkpoint(tmp_path / "checkpoints", name, {}, CheckpointMeta())
    assert not (tmp_path / "latest.pt").exists()
