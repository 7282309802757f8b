"""Checkpoints are whole, verified, numbered and kept as the policy says."""

from __future__ import annotations

import json
import random
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from warpzone.checkpoints.keeping import CheckpointKeeper
from warpzone.checkpoints.policy import CheckpointPolicy
from warpzone.checkpoints.saving import (
    load_checkpoint,
    numbered_checkpoints,
    prune,
    read_meta,
    save_checkpoint,
    sound_meta,
    step_name,
)
from warpzone.checkpoints.sidecar import CheckpointMeta
from warpzone.errors import CheckpointError

from .faulty_files import Crash, FaultyFiles


def same(a: Any, b: Any) -> bool:
    """Equality with types, for trees."""
    if isinstance(a, torch.Tensor):
        return isinstance(b, torch.Tensor) and a.dtype == b.dtype and torch.equal(a, b)
    if isinstance(a, np.ndarray):
        return (
            isinstance(b, np.ndarray)
            and a.dtype == b.dtype
            and a.shape == b.shape
            and a.tobytes() == b.tobytes()
        )
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    return bool(a == b)


arrays = hnp.arrays(
    dtype=st.sampled_from([np.uint8, np.uint16, np.int64, np.float16, np.float32, np.bool_]),
    shape=hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
    elements={"allow_nan": False},
)
leaves = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**130), 2**130),
    st.floats(allow_nan=False),
    st.text(st.characters(exclude_categories=("Cs",))),
    st.binary(max_size=64),
    arrays,
    arrays.filter(lambda a: a.dtype != np.uint16).map(lambda a: torch.from_numpy(a.copy())),
)
trees = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.dictionaries(st.one_of(st.text(max_size=8), st.integers(0, 99)), inner, max_size=4),
    ),
    max_leaves=12,
)


@given(tree=trees)
def test_any_tree_comes_back_as_it_was(tree: Any, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("c")
    path = save_checkpoint(folder, "latest", tree, CheckpointMeta())
    assert same(load_checkpoint(path).state, tree)


def test_optimiser_and_generators_go_on_exactly_where_they_were(tmp_path: Path) -> None:
    model = torch.nn.Linear(3, 2)
    optimiser = torch.optim.Adam(model.parameters())
    model(torch.ones(1, 3)).sum().backward()
    optimiser.step()
    numpy_generator = np.random.default_rng(3)
    state = {
        "model": model.state_dict(),
        "optimiser": optimiser.state_dict(),
        "python": random.getstate(),
        "numpy": numpy_generator.bit_generator.state,
        "torch": torch.get_rng_state(),
    }
    path = save_checkpoint(tmp_path, "latest", state, CheckpointMeta())
    drawn = (random.random(), numpy_generator.random(), torch.rand(1).item())

    loaded = load_checkpoint(path).state
    other = torch.optim.Adam(torch.nn.Linear(3, 2).parameters())
    other.load_state_dict(loaded["optimiser"])
    random.setstate(loaded["python"])
    numpy_generator.bit_generator.state = loaded["numpy"]
    torch.set_rng_state(loaded["torch"])
    assert (random.random(), numpy_generator.random(), torch.rand(1).item()) == drawn
    assert same(other.state_dict()["state"], optimiser.state_dict()["state"])


def test_the_file_is_an_ordinary_torch_archive(tmp_path: Path) -> None:
    path = save_checkpoint(tmp_path, "latest", {"w": torch.arange(3)}, CheckpointMeta())
    assert torch.load(path, weights_only=True)["w"].tolist() == [0, 1, 2]


def test_a_view_is_saved_without_the_storage_behind_it(tmp_path: Path) -> None:
    path = save_checkpoint(tmp_path, "latest", torch.zeros(1_000_000)[:10], CheckpointMeta())
    assert path.stat().st_size < 10_000


@pytest.mark.parametrize("value", [{1, 2}, object(), np.array([object()]), {("a", "b"): 1}, Path("x")])
def test_what_the_format_does_not_hold_is_refused_when_saving(tmp_path: Path, value: Any) -> None:
    with pytest.raises(CheckpointError, match=r"state\['a'\]"):
        save_checkpoint(tmp_path, "latest", {"a": value}, CheckpointMeta())
    assert list(tmp_path.iterdir()) == []


def test_sidecar_says_what_the_checkpoint_is(tmp_path: Path) -> None:
    meta = CheckpointMeta(
        global_step=640,
        global_update=10,
        config={"stage": "1-1", "lr": float("nan")},
        clear_rate={"1-1": 0.5, "1-2": 0.0},
        architecture={"memory": "gru"},
        rom_sha256="ab" * 32,
    )
    path = save_checkpoint(tmp_path, "latest", {}, meta)
    sidecar = json.loads(path.with_suffix(".json").read_text())
    assert sidecar["schema_version"] == 1
    assert (sidecar["global_step"], sidecar["global_update"]) == (640, 10)
    assert sidecar["clear_rate"] == {"1-1": 0.5, "1-2": 0.0}
    assert sidecar["clear_rate_mean"] == 0.25
    assert sidecar["config"] == {"stage": "1-1", "lr": None}
    assert sidecar["rom_sha256"] == "ab" * 32
    assert sidecar["file"]["size"] == path.stat().st_size
    assert {"python", "torch", "numpy"} <= sidecar["versions"].keys()
    assert "previous" not in sidecar


@pytest.mark.parametrize("fault", ["ENOSPC", "EIO", "crash"])
def test_a_failed_save_leaves_the_old_or_the_new_checkpoint(tmp_path: Path, fault: str) -> None:
    calls = FaultyFiles(-1, fault)
    save_checkpoint(tmp_path / "count", "latest", {"n": 0}, CheckpointMeta(), files=FaultyFiles(-1, fault))
    save_checkpoint(tmp_path / "count", "latest", {"n": 0}, CheckpointMeta(), files=calls)
    assert calls.calls > 10
    for fail_at in range(calls.calls):
        folder = tmp_path / f"{fault}{fail_at}"
        save_checkpoint(folder, "latest", {"n": 1}, CheckpointMeta(global_update=1))
        with pytest.raises(Crash if fault == "crash" else CheckpointError):
            save_checkpoint(
                folder, "latest", {"n": 2}, CheckpointMeta(global_update=2), files=FaultyFiles(fail_at, fault)
            )
        found = load_checkpoint(folder / "latest.pt")
        assert found.state["n"] == found.meta.global_update in (1, 2)

        save_checkpoint(folder, "latest", {"n": 3}, CheckpointMeta(global_update=3))
        assert load_checkpoint(folder / "latest.pt").state == {"n": 3}
        if fault != "crash":
            assert sorted(p.name for p in folder.iterdir()) == ["latest.json", "latest.pt"]


def test_crashes_in_a_row_never_lose_the_checkpoint(tmp_path: Path) -> None:
    save_checkpoint(tmp_path, "latest", {"n": 0}, CheckpointMeta(global_update=0))
    for fail_at in [*range(60), *range(60)]:
        before = load_checkpoint(tmp_path / "latest.pt").meta.global_update
        with suppress(Crash):
            save_checkpoint(
                tmp_path, "latest", {"n": before + 1}, CheckpointMeta(global_update=before + 1),
                files=FaultyFiles(fail_at, "crash"),
            )  # fmt: skip
        found = load_checkpoint(tmp_path / "latest.pt")
        assert found.state["n"] == found.meta.global_update in (before, before + 1)


def test_short_writes_are_completed(tmp_path: Path) -> None:
    for fail_at in range(12):
        state = {"w": torch.arange(1000)}
        path = save_checkpoint(
            tmp_path, "latest", state, CheckpointMeta(), files=FaultyFiles(fail_at, "short")
        )
        assert same(load_checkpoint(path).state, state)


def test_files_of_killed_writers_are_removed_and_those_of_living_ones_kept(tmp_path: Path) -> None:
    dead, living = tmp_path / ".latest.pt.999999999.0.tmp", tmp_path / ".latest.pt.1.0.tmp"
    dead.touch()
    living.touch()
    save_checkpoint(tmp_path, "latest", {}, CheckpointMeta())
    assert not dead.exists()
    assert living.exists()


def test_a_reader_beside_a_writer_always_finds_a_sound_checkpoint(tmp_path: Path) -> None:
    save_checkpoint(tmp_path, "latest", {"n": 0}, CheckpointMeta(global_update=0))
    stop = threading.Event()

    def write() -> None:
        n = 0
        while not stop.is_set():
            n += 1
            save_checkpoint(tmp_path, "latest", {"n": n}, CheckpointMeta(global_update=n))

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(100):
            found = load_checkpoint(tmp_path / "latest.pt")
            assert found.state["n"] == found.meta.global_update
    finally:
        stop.set()
        writer.join()


def test_keeper_saves_by_updates_and_keeps_the_newest(tmp_path: Path) -> None:
    policy = CheckpointPolicy(latest_every_updates=2, latest_every_s=0, step_every_updates=4, keep=2)
    keeper = CheckpointKeeper(tmp_path, policy)
    for update in range(1, 17):
        keeper.save_due(dict, CheckpointMeta(global_update=update, global_step=update * 10))
    assert [p.stem for p in numbered_checkpoints(tmp_path)] == [step_name(120), step_name(160)]
    assert read_meta(tmp_path / "latest.pt").global_update == 16
    assert not (tmp_path / f"{step_name(80)}.json").exists()
    assert not (tmp_path / "best.pt").exists()


def test_keeper_saves_by_seconds(tmp_path: Path) -> None:
    now = [0.0]
    policy = CheckpointPolicy(latest_every_updates=0, latest_every_s=60, step_every_updates=0)
    keeper = CheckpointKeeper(tmp_path, policy, clock=lambda: now[0])
    saved = []
    for update in range(10):
        now[0] = update * 25.0
        if keeper.save_due(dict, CheckpointMeta(global_update=update)):
            saved.append(update)
    # A new run saves soon for the first time, then every minute.
    assert saved == [1, 4, 7]


def test_the_first_save_of_a_run_comes_after_some_seconds_also_where_the_next_are_due_by_updates(
    tmp_path: Path,
) -> None:
    now = [0.0]
    policy = CheckpointPolicy(latest_every_updates=50, latest_every_s=300, step_every_updates=0)
    for start, expected in ((0, [6, 50]), (60, [100])):
        now[0] = 0.0
        keeper, saved = CheckpointKeeper(tmp_path, policy, clock=lambda: now[0]), []
        for update in range(start + 1, start + 60):
            now[0] += 0.9
            if keeper.save_due(dict, CheckpointMeta(global_update=update)):
                saved.append(update)
        assert saved == expected


def test_a_run_that_is_never_to_save_latest_does_not_save_early_either(tmp_path: Path) -> None:
    now = [0.0]
    policy = CheckpointPolicy(latest_every_updates=0, latest_every_s=0, step_every_updates=0)
    keeper = CheckpointKeeper(tmp_path, policy, clock=lambda: now[0])
    now[0] = 1e6
    assert not keeper.due(1)


def test_best_is_the_highest_clear_rate_also_after_a_restart(tmp_path: Path) -> None:
    policy = CheckpointPolicy(latest_every_updates=1)
    for update, rate in enumerate([0.0, 0.4, 0.2, 0.6, 0.5], start=1):
        keeper = CheckpointKeeper(tmp_path, policy)
        keeper.save_due(dict, CheckpointMeta(global_update=update, clear_rate={"1-1": rate}))
    assert read_meta(tmp_path / "best.pt").global_update == 4


def test_an_agent_that_was_evaluated_is_only_replaced_by_one_that_did_as_well(tmp_path: Path) -> None:
    """Of all checkpoints, the highest clear rate in training is partly luck; fresh episodes show what is better."""
    policy = CheckpointPolicy(latest_every_updates=1)
    saved = [
        ({"1-1": 0.97}, {}),
        ({"1-1": 0.95}, {"1-1": 0.93}),  # what was evaluated comes first,
        ({"1-1": 1.00}, {}),  # also before a higher clear rate in training
        ({"1-1": 1.00}, {"1-1": 0.92}),
        ({"1-1": 0.90}, {"1-1": 0.94}),
        ({}, {}),
        ({"1-1": 0.10, "1-2": 0.50}, {}),  # of 1-1 alone: less than it had there in training
        ({"1-1": 0.45, "1-2": 0.50}, {}),
    ]
    best = []
    for update, (rate, evaluated) in enumerate(saved, start=1):
        keeper = CheckpointKeeper(tmp_path, policy)
        keeper.save_due(
            dict, CheckpointMeta(global_update=update, clear_rate=rate, fresh_clear_rate=evaluated)
        )
        best.append(read_meta(tmp_path / "best.pt").global_update)
    assert best == [1, 2, 2, 2, 5, 5, 5, 8]


def test_best_compares_the_same_stages(tmp_path: Path) -> None:
    policy = CheckpointPolicy(latest_every_updates=1)
    rates = [{"1-1": 0.9}, {"1-1": 0.8, "1-2": 0.6}, {"1-1": 0.9, "1-2": 0.4}, {"2-1": 0.1}]
    best = []
    for update, rate in enumerate(rates, start=1):
        keeper = CheckpointKeeper(tmp_path, policy)
        keeper.save_due(dict, CheckpointMeta(global_update=update, clear_rate=rate))
        best.append(read_meta(tmp_path / "best.pt").global_update)
    # 0.9 of one stage is less than 0.8 and 0.6 of two; `best` of other stages says nothing about 2-1.
    assert best == [1, 2, 2, 4]


def test_best_is_not_compared_with_a_rate_from_easier_episodes(tmp_path: Path) -> None:
    policy = CheckpointPolicy(latest_every_updates=1)
    views = [
        {},
        {"random_start": 0.0},
        {"random_start": 0.5, "size": (84, 84)},
        {"random_start": 0.5, "size": [84, 84]},
    ]
    best = []
    for update, (view, rate) in enumerate(zip(views, (0.9, 0.8, 0.7, 0.6), strict=True), start=1):
        keeper = CheckpointKeeper(tmp_path, policy)
        meta = CheckpointMeta(global_update=update, clear_rate={"1-1": rate}, config={"view": view})
        keeper.save_due(dict, meta)
        best.append(read_meta(tmp_path / "best.pt").global_update)
    assert best == [1, 1, 3, 3]


def test_a_run_taken_back_to_an_older_step_keeps_what_it_saves_now(tmp_path: Path) -> None:
    policy = CheckpointPolicy(latest_every_updates=0, latest_every_s=0, step_every_updates=1, keep=2)
    for step in (700, 800, 900, 200, 300):
        CheckpointKeeper(tmp_path, policy).save_due(dict, CheckpointMeta(global_update=1, global_step=step))
    assert [p.stem for p in numbered_checkpoints(tmp_path)] == [step_name(200), step_name(300)]


def test_prune_dry_run_deletes_nothing(tmp_path: Path) -> None:
    for n in (1, 2, 3):
        save_checkpoint(tmp_path, step_name(n), {}, CheckpointMeta(global_step=n))
    assert [p.stem for p in prune(tmp_path, 1, dry_run=True)] == [step_name(1), step_name(2)]
    assert len(numbered_checkpoints(tmp_path)) == 3


def test_a_file_with_another_ones_sidecar_is_not_sound(tmp_path: Path) -> None:
    a = save_checkpoint(tmp_path, "a", {"n": 1}, CheckpointMeta())
    b = save_checkpoint(tmp_path, "b", {"n": 2}, CheckpointMeta())
    b.with_suffix(".json").write_bytes(a.with_suffix(".json").read_bytes())
    assert sound_meta(a)
    assert sound_meta(b) is None
