"""ROMs and saved states that are not what they should be: one sentence each, and nothing breaks."""

from __future__ import annotations

from pathlib import Path

import pytest

import warpzone
from tests.engine.assembler import cartridge
from warpzone.engine.rom import rom_path

GOOD = cartridge("reset: inc $10\n jmp reset")


def with_header(**changes: int) -> bytes:
    image = bytearray(GOOD)
    for name, value in changes.items():
        image[int(name[1:])] = value
    return bytes(image)


BAD_ROMS = {
    "empty": (b"", "The ROM is empty"),
    "one byte": (b"N", "iNES magic"),
    "wrong magic": (b"PK\x03\x04" + GOOD[4:], "iNES magic"),
    "header only": (GOOD[:16], "cut short"),
    "truncated": (GOOD[:-1], "cut short"),
    "mapper 4": (with_header(b6=0x40), "mapper 4"),
    "mapper 66": (with_header(b6=0x20, b7=0x40), "mapper 66"),
    "NES 2.0 mapper 256": (with_header(b7=0x08, b8=0x01), "mapper 256"),
    "NES 2.0 exponent": (with_header(b7=0x08, b9=0x0F), "exponent"),
    "no program": (with_header(b4=0), "0 program banks"),
    "too much program": (with_header(b4=4), "4 program banks"),
    "too many characters": (with_header(b5=2), "2 character banks"),
    "far too large": (GOOD + bytes(9 << 20), "too large"),
}


@pytest.mark.parametrize("kind", BAD_ROMS)
def test_a_rom_that_cannot_run_is_refused_in_one_sentence(kind: str) -> None:
    image, words = BAD_ROMS[kind]
    with pytest.raises(warpzone.RomError, match=words) as caught:
        warpzone.Machine(image)
    message = str(caught.value)
    assert message.endswith(".")
    assert "\n" not in message
    assert isinstance(caught.value, warpzone.Error)


def test_headers_that_old_tools_wrote_over_are_understood() -> None:
    dirty = with_header(b7=0x44, b12=ord("D"), b13=ord("u"), b14=ord("d"), b15=ord("e"))
    machine = warpzone.Machine(dirty)
    machine.step(frames=2)
    assert machine.ram[0x10] > 0


def test_nes_2_headers_small_programs_trainers_and_character_ram_run() -> None:
    nes2 = with_header(b7=0x08)
    small = with_header(b4=1)[: 16 + 0x4000] + GOOD[16 + 0x8000 :]
    # A 16 KB image stands twice: vectors and code come from its only bank.
    code = bytearray(0x4000)
    code[0:5] = bytes([0xE6, 0x10, 0x4C, 0x00, 0xC0])
    code[0x3FFC:0x3FFE] = bytes([0x00, 0xC0])
    small = with_header(b4=1)[:16] + bytes(code) + bytes(0x2000)
    trained = with_header(b6=0x05)[:16] + bytes(range(256)) * 2 + GOOD[16:]
    no_characters = with_header(b5=0)[:-0x2000]
    for image in (nes2, small, trained, no_characters):
        machine = warpzone.Machine(image)
        machine.step(frames=2)
        assert machine.ram[0x10] > 0
    assert bytes(warpzone.Machine(trained).wram[0x1000:0x1004]) == bytes([0, 1, 2, 3])


def test_a_missing_rom_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(warpzone.RomError, match="There is no ROM at"):
        warpzone.rom(tmp_path / "nothing.nes")
    monkeypatch.setenv("WARPZONE_ROM", str(tmp_path / "neither.nes"))
    with pytest.raises(warpzone.RomError, match=r"neither\.nes"):
        warpzone.rom()


def test_the_lost_levels_are_not_looked_for_where_the_game_is(monkeypatch: pytest.MonkeyPatch) -> None:
    game, lost = str(rom_path()), rom_path(lost_levels=True)
    monkeypatch.setenv("WARPZONE_ROM", game)
    # Commands pass the variable on as --rom.
    assert rom_path(game, lost_levels=True) == rom_path(lost_levels=True) == lost
    assert str(rom_path()) == game
    monkeypatch.delenv("WARPZONE_ROM")
    with pytest.raises(warpzone.RomError, match="not the Lost Levels"):
        warpzone.rom(game, lost_levels=True)


def test_a_directory_and_a_giant_are_no_roms(tmp_path: Path) -> None:
    with pytest.raises(warpzone.RomError):
        warpzone.rom(tmp_path)
    giant = tmp_path / "giant.nes"
    with giant.open("wb") as file:
        file.truncate(1 << 30)
    with pytest.raises(warpzone.RomError, match="too large"):
        warpzone.rom(giant)


def test_an_unknown_rom_runs_with_a_warning(tmp_path: Path) -> None:
    path = tmp_path / "homebrew.nes"
    path.write_bytes(GOOD)
    with pytest.warns(UserWarning, match=r"homebrew\.nes is not a known dump"):
        image = warpzone.rom(path)
    warpzone.Machine(image).step(frames=1)


def test_a_rom_that_is_not_the_game_cannot_be_an_environment() -> None:
    with pytest.raises(warpzone.RomError, match="does not seem to be"):
        warpzone.MarioVectorEnv(1, rom=GOOD)


def test_a_rom_that_stops_the_processor_is_no_environment_but_a_machine() -> None:
    stopped = cartridge("reset: .byte $02")
    machine = warpzone.Machine(stopped)
    machine.step(frames=3)
    assert machine.jammed
    assert machine.frame == 3
    with pytest.raises(warpzone.RomError, match="does not seem to be"):
        warpzone.MarioVectorEnv(1, rom=stopped)


def test_the_game_crashing_in_a_worker_reaches_the_caller_with_its_index() -> None:
    envs = warpzone.MarioVectorEnv(4, "1-1", threads=2, frame_skip=1)
    envs.reset(seed=0)
    # The saved console of environment 2, going on at an instruction that stops it.
    blob = bytearray(envs.snapshot(2))
    crashed = _with_program_counter(blob, 0x0000, b"\x02")
    envs.restore(2, crashed)
    with pytest.raises(warpzone.Error, match=r"^Environment 2: .*stops it"):
        envs.step([0] * 4)
    envs.reset(options={"reset_mask": [False, False, True, False]})
    envs.step([1] * 4)
    envs.close()


def _with_program_counter(blob: bytearray, pc: int, code: bytes) -> bytes:
    """A snapshot whose processor goes on at `pc` in zero page, with a checksum that fits."""
    header = 36
    # clock, frame_end, frame_begin, nmi_sample, scheduled_origin: five 64-bit numbers before pc.
    at = header + 5 * 8
    blob[at : at + 2] = pc.to_bytes(2, "little")
    ram = _find_ram(bytes(blob))
    blob[ram + pc : ram + pc + len(code)] = code
    checksum = 0xCBF29CE484222325
    for byte in blob[header:]:
        checksum = (checksum ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    blob[28:36] = checksum.to_bytes(8, "little")
    return bytes(blob)


def _find_ram(blob: bytes) -> int:
    """Where the 2 KB of RAM lie: the score, coins and time of a fresh 1-1 are as good as an address."""
    for at in range(36, len(blob) - 0x800):
        if blob[at + 0x7F8 : at + 0x7FB] in (b"\x04\x00\x00", b"\x03\x09\x09") and blob[at + 0x75A] == 2:
            return at
    raise AssertionError("no RAM in the snapshot")


def bad_states() -> dict[str, tuple[bytes, str]]:
    machine = warpzone.Machine(GOOD)
    machine.step(frames=5)
    good = machine.save()
    other = warpzone.Machine(cartridge("reset: dec $10\n jmp reset")).save()
    flipped = bytearray(good)
    flipped[100] ^= 1
    newer = bytearray(good)
    newer[4] = 99
    return {
        "empty": (b"", "cut short"),
        "cut short": (good[:-5], "damaged|cut short"),
        "header only": (good[:30], "cut short"),
        "not a snapshot": (b"\x89PNG" + bytes(500), "not a Warpzone snapshot"),
        "a bit flipped": (bytes(flipped), "checksum"),
        "longer": (good + b"\x00", "damaged|behind"),
        "another game": (other, "another ROM"),
        "another version": (bytes(newer), "version 99"),
    }


@pytest.mark.parametrize("kind", list(bad_states()))
def test_a_state_that_cannot_be_loaded_is_refused_and_changes_nothing(kind: str) -> None:
    blob, words = bad_states()[kind]
    machine = warpzone.Machine(GOOD)
    machine.step(frames=7)
    before = machine.save()
    with pytest.raises(warpzone.CheckpointError, match=words) as caught:
        machine.load(blob)
    assert str(caught.value).endswith(".")
    assert machine.save() == before
    machine.step()


def test_states_of_machines_and_environments_are_not_taken_for_each_other() -> None:
    envs = warpzone.MarioVectorEnv(1, "1-1", threads=1)
    envs.reset(seed=0)
    machine = warpzone.Machine(warpzone.rom())
    with pytest.raises(warpzone.CheckpointError, match="another kind"):
        machine.load(envs.snapshot(0))
    with pytest.raises(warpzone.CheckpointError, match="another kind"):
        envs.restore(0, machine.save())
    envs.close()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda m: m.step(256), "0 to 255"),
        (lambda m: m.step(-1), "0 to 255"),
        (lambda m: m.step(0, buttons2=999), "0 to 255"),
        (lambda m: m.step(0, frames=-1), "negative"),
        (lambda m: m.peek(0x10000), "0 to 0xFFFF"),
        (lambda m: m.peek(-1), "0 to 0xFFFF"),
    ],
)
def test_calls_out_of_range_are_refused(call: object, words: str) -> None:
    machine = warpzone.Machine(GOOD)
    with pytest.raises(warpzone.ConfigError, match=words):
        call(machine)  # type: ignore[operator]


def test_an_unknown_region_is_refused() -> None:
    with pytest.raises(warpzone.ConfigError, match="secam"):
        warpzone.Machine(GOOD, region="secam")


@pytest.mark.parametrize("region", ["ntsc", "pal"])
def test_a_program_that_leaves_the_sound_unit_alone_loads_its_own_state(region: str) -> None:
    machine = warpzone.Machine(cartridge("reset: inc $10\n jmp reset"), region=region)
    machine.step(0, frames=1500, render=False)
    saved = machine.save()
    machine.load(saved)
    assert machine.save() == saved
    machine.step(0, frames=10, render=False)
