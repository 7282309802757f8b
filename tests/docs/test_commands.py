"""Commands in `bash` blocks of the README and the documentation: short ones run, `train`, `master`, `watch`, `play` and
`sweep` run as `--dry-run`, `make` as `make -n`. Also links between pages, and the limits that keep pages readable."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.test_play import save_replay
from tests.run.small_runs import small_run
from warpzone.cli.commands import COMMANDS
from warpzone.cli.main import main

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
ELSEWHERE = {"pip", "ssh", "jq", "docker", "source", "git"}
"""Tools that are not ours: their lines are not run."""
SMALLER = {
    "train": ["--dry-run"],
    "master": ["--dry-run"],
    "watch": ["--dry-run"],
    "play": ["--dry-run"],
    "sweep": ["--dry-run"],
    "eval": ["--episodes", "2"],
}


def blocks(page: Path, *kinds: str) -> list[str]:
    return [text for kind, text in BLOCK.findall(page.read_text()) if kind in kinds]


def commands() -> list[tuple[str, str]]:
    found = []
    for page in PAGES:
        for text in blocks(page, "bash", "sh"):
            lines = [line.partition(" #")[0].strip() for line in text.replace("\\\n", " ").splitlines()]
            found += [(page.name, line) for line in lines if line and not line.startswith("#")]
    return list(dict.fromkeys(found))


def smaller(words: list[str]) -> list[str]:
    """The words of a warpzone command with limits that make it short."""
    if words[:1] == ["doctor"] and len(words) > 1 and words[1] in ("sync", "async"):
        return [*words, "--trials", "1"]
    if words[:2] == ["levels", "play"]:
        return [*words, "--dry-run"]
    if {"-h", "--help", "--dry-run"} & set(words):
        return words
    return [*words, *SMALLER.get(words[0], [])]


@pytest.fixture(scope="module")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run called mario and files of a play, as a reader has after the first commands."""
    folder = tmp_path_factory.mktemp("reader")
    (folder / "plays").mkdir()
    for kind in ("replay", "start"):
        save_replay(folder / "plays" / f"pipe.{kind}.json")
    small_run(folder / "runs", "--run-name", "mario", "--total-updates", "2", "--stall-limit", "20")
    return folder


def test_there_are_commands_on_the_pages_that_need_them() -> None:
    pages = {page for page, _ in commands()}
    assert {"README.md", "README.zh-CN.md", "index.md", "live-page.md", "checkpoints.md"} <= pages


@pytest.mark.parametrize(("page", "line"), commands())
def test_a_command_on_a_page_works(
    page: str, line: str, workplace: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    words = shlex.split(line)
    while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):
        name, _, value = words.pop(0).partition("=")
        monkeypatch.setenv(name, value)
    tool = Path(words[0]).name
    if tool in ELSEWHERE:
        pytest.skip(f"{tool} is not ours")
    if tool == "make":
        done = subprocess.run(["make", "-n", *words[1:]], cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return
    if tool == "python":
        assert (ROOT / words[1]).is_file()
        return
    assert tool == "warpzone", f"{page}: who runs {line!r}?"
    assert words[1] in COMMANDS
    monkeypatch.chdir(workplace)
    try:
        status = main(smaller(words[1:]))
    except SystemExit as ended:
        status = int(ended.code or 0)
    allowed = (0, 1) if words[1] == "doctor" or "--check" in words else (0,)
    assert status in allowed, capfd.readouterr().err


@pytest.mark.parametrize("page", [str(page.relative_to(ROOT)) for page in PAGES if blocks(page, "python")])
def test_the_python_on_a_page_works(page: str, workplace: Path, tmp_path: Path) -> None:
    script = (
        tmp_path / "page.py"
    )  # all of them in a fresh Python: a later block may use names from an earlier one
    script.write_text("\n\n".join(blocks(ROOT / page, "python")))
    done = subprocess.run([sys.executable, str(script)], cwd=workplace, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def anchors(page: Path) -> set[str]:
    """Anchors of the headings, as GitHub and MkDocs make them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    plain = [
        re.sub(r"[^\w\s-]", "", title.lower()).strip()
        for title in re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    ]
    return {re.sub(r"\s", "-", title) for title in plain}


@pytest.mark.parametrize("page", [str(page.relative_to(ROOT)) for page in PAGES])
def test_links_between_pages_lead_somewhere(page: str) -> None:
    path = ROOT / page
    for target, anchor in re.findall(r"\]\(([^)#:\s]*)(?:#([^)\s]*))?\)", path.read_text()):
        linked = path.parent / target if target else path
        assert linked.exists(), target
        if anchor:
            assert anchor in anchors(linked), f"{target}#{anchor}"


@pytest.mark.parametrize("readme", ["README.md", "README.zh-CN.md"])
def test_a_readme_is_short_and_its_tables_are_readable(readme: str) -> None:
    lines = (ROOT / readme).read_text().splitlines()
    assert len(lines) < 150
    shown = [re.sub("<!--.*?-->", "", line) for line in lines]
    cells = [cell for line in shown if line.startswith("|") for cell in line.strip("|").split("|")]
    assert [cell for cell in cells if len(re.sub(r"\]\([^)]*\)", "]", cell).split()) > 20] == []


def test_both_readmes_say_the_same() -> None:
    english, chinese = ((ROOT / name).read_text() for name in ("README.md", "README.zh-CN.md"))
    for pattern in (r"^#+ ", r"^\|", r"^- \*\*", r"^warpzone \S+", r"^make \S+"):
        found = [re.findall(pattern, text, re.MULTILINE) for text in (english, chinese)]
        assert found[0] == found[1], pattern
    assert sorted(re.findall(r"docs/[^)\s]+", english)) == sorted(re.findall(r"docs/[^)\s]+", chinese))
    for number in re.findall(r"\d[\d,.]*\d", english):
        assert number in chinese, number


@pytest.mark.parametrize("page", [str(page.relative_to(ROOT)) for page in PAGES])
def test_a_page_has_under_250_lines_and_is_in_the_navigation(page: str) -> None:
    text = (ROOT / page).read_text()
    assert len(text.splitlines()) < 250 or "<!-- Written by `python bench/reference.py docs`" in text
    if page.startswith("docs/"):
        assert page.removeprefix("docs/") in (ROOT / "mkdocs.yml").read_text()
