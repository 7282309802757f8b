"""Whatever makes the engine fast changes nothing: the same memory, cycles and pixels as the plain way."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import warpzone
from tests.engine.assembler import cartridge

MOVIES = Path(__file__).resolve().parents[3] / "shared" / "movies"
LEVEL_OVER = 0x0770


def movie(name: str) -> list[int]:
    """The buttons of a .fm2 movie, frame by frame."""
    path = MOVIES / name
    if not path.is_file():
        pytest.skip(f"the movie {name} is not beside the repository")
    lines = [line.split("|") for line in path.read_text().splitlines() if line.startswith("|")]
    return [sum(1 << 7 - i for i, c in enumerate(line[2]) if c not in ". ") for line in lines]


def random_buttons(seed: int, frames: int) -> list[int]:
    rng = np.random.default_rng(seed)
    buttons = [0] * 40 + [8] * 2 + [0] * 10
    while len(buttons) < frames:
        held = int(
            rng.choice([0x80, 0x82, 0x81, 0x83, 0x83, 0x00, 0x40, 0x20, int(rng.integers(256)) & 0xF7])
        )
        buttons += [held] * int(rng.integers(2, 25))
    return buttons[:frames]


def play(buttons: list[int], *, region: str = "ntsc", draw: bool = False, **options: bool) -> list[object]:
    """Memory and cycles after every frame, and pixels every tenth frame when drawn."""
    machine = warpzone.Machine(warpzone.rom(), region)
    seen: list[object] = []
    for k, held in enumerate(buttons):
        machine.step(held, render=draw, **options)
        seen.append((machine.cycles, hash(machine.ram.tobytes())))
        if draw and k % 10 == 0:
            seen.append(hash(machine.screen.tobytes()))
    seen.append(machine.save())
    return seen


def states(seen: list[object]) -> list[object]:
    return [item for item in seen if isinstance(item, tuple)]


@pytest.mark.parametrize("region", ["ntsc", "pal"])
@pytest.mark.parametrize("seed", [0, 1])
def test_skipping_waits_and_translating_change_nothing(region: str, seed: int) -> None:
    buttons = random_buttons(seed, 700)
    plain = play(buttons, region=region, draw=True, skip_idle_loops=False, translate=False)
    assert play(buttons, region=region, draw=True, skip_idle_loops=True, translate=False) == plain
    assert play(buttons, region=region, draw=True, skip_idle_loops=True, translate=True) == plain


@pytest.mark.parametrize("seed", [2, 3])
def test_frames_that_are_not_drawn_run_the_same(seed: int) -> None:
    buttons = random_buttons(seed, 900)
    assert states(play(buttons, draw=False)) == states(play(buttons, draw=True))


@pytest.mark.parametrize("stage", ["1-2", "2-2", "4-4", "8-3"])
def test_the_same_in_caves_water_castles_and_late_worlds(stage: str) -> None:
    console, plain = (warpzone.Machine(warpzone.rom()) for _ in range(2))
    # From power-on to the stage by writing it into memory, as the environments do.
    world, level = (int(part) - 1 for part in stage.split("-"))
    for machine, options in ((console, {}), (plain, {"skip_idle_loops": False, "translate": False})):
        rng = np.random.default_rng(5)
        for k in range(500):
            held = 8 if k in (50, 51) else int(rng.choice([0x82, 0x83, 0x81])) if k > 120 else 0
            if 50 <= k < 60:
                machine.ram[0x75F], machine.ram[0x75C], machine.ram[0x760] = world, level, level
            machine.step(held, render=True, **options)
    assert (console.ram[0x75F], console.ram[0x75C], console.ram[0x770]) == (world, level, 1)
    assert console.save() == plain.save()
    assert np.array_equal(console.screen, plain.screen)
    assert console.cycles == plain.cycles


@pytest.mark.parametrize("region", ["pal", "ntsc"])
def test_the_movie_of_the_whole_game_stays_in_sync_to_its_end(region: str) -> None:
    # Frame k takes line k + 1. It plays all 32 stages and ends with the victory in 8-4.
    buttons = movie("pal-warpless.fm2")
    machine = warpzone.Machine(warpzone.rom(), region)
    stages: list[tuple[int, int]] = []
    for held in buttons[1:]:
        machine.step(held, render=False)
        here = int(machine.ram[0x75F]) + 1, int(machine.ram[0x75C]) + 1
        if machine.ram[LEVEL_OVER] == 1 and (not stages or stages[-1] != here):
            stages.append(here)
    assert stages == [(world, stage) for world in range(1, 9) for stage in range(1, 5)]
    assert (machine.ram[LEVEL_OVER], machine.ram[0x75F]) == (2, 7)


def test_a_state_saved_in_the_middle_goes_on_to_the_same_bits() -> None:
    buttons = random_buttons(4, 600)
    machine = warpzone.Machine(warpzone.rom())
    for held in buttons[:350]:
        machine.step(held, render=False)
    saved = machine.save()
    assert machine.save() == saved
    other = warpzone.Machine(warpzone.rom())
    other.step(7, frames=33)
    other.load(saved)
    for held in buttons[350:]:
        machine.step(held, render=False)
        other.step(held, render=False)
    assert other.save() == machine.save()
    assert np.array_equal(other.ram, machine.ram)


def test_frames_at_once_are_the_same_as_one_by_one() -> None:
    one, many = (warpzone.Machine(warpzone.rom()) for _ in range(2))
    many.step(0x80, frames=200)
    for _ in range(200):
        one.step(0x80)
    assert one.save() == many.save()
    assert np.array_equal(one.screen, many.screen)


ENTERED_AT_THE_BRANCH = {
    # X counts from 0 all the way round when the loop is entered behind its decrement.
    "delay": "ldx #0\n lda #1\n jmp entry\nhead: dex\nentry: bne head\n inc $10\n jmp start",
    # The branch is taken by what was loaded before; the first real read of the status ends the loop.
    "poll": "bit $2002\n lda #$80\n jmp entry\nhead: lda $2002\nentry: bmi head\n inc $10\n jmp start",
    "masked": "bit $2002\n lda #$80\n jmp entry\nhead: lda $2002\n and #$80\nentry: bne head\n inc $10\n jmp start",
}


@pytest.mark.parametrize("loop", ENTERED_AT_THE_BRANCH)
def test_a_waiting_loop_entered_at_its_branch(loop: str) -> None:
    rom = cartridge(f"reset:\nstart: {ENTERED_AT_THE_BRANCH[loop]}")
    seen = []
    for skip, translate in ((False, False), (True, False), (True, True)):
        machine = warpzone.Machine(rom)
        machine.step(0, frames=5, render=False, skip_idle_loops=skip, translate=translate)
        seen.append((machine.cycles, machine.ram.tobytes()))
    assert seen[0] == seen[1] == seen[2]
