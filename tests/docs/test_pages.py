"""Links between the pages, both READMEs, and the limits that keep pages readable."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import warpzone
from wheels import address

from .pages import PAGES, ROOT

FENCED_PYTHON = re.compile(r"^```python\n.*?^```", re.MULTILINE | re.DOTALL)


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
    for pattern in (r"^#+ ", r"^\|", r"^- \*\*", r"^(?:warpzone|make|python|source) [^#\n]*[^#\s]"):
        found = [re.findall(pattern, text, re.MULTILINE) for text in (english, chinese)]
        assert found[0] == found[1], pattern
    assert FENCED_PYTHON.findall(english) == FENCED_PYTHON.findall(chinese)
    for kind in (r"<!--figure [^>]*-->[^<]*", r"\]\((?:http|examples|LICENSE)[^)]*\)"):
        assert sorted(re.findall(kind, english)) == sorted(re.findall(kind, chinese))
    assert sorted(re.findall(r"docs/[^)\s]+", english)) == sorted(re.findall(r"docs/[^)\s]+", chinese))
    for number in re.findall(r"\d[\d,.]*\d", english):
        assert number in chinese, number


@pytest.mark.parametrize("page", [str(page.relative_to(ROOT)) for page in PAGES])
def test_a_page_has_under_250_lines_and_is_in_the_navigation(page: str) -> None:
    text = (ROOT / page).read_text()
    assert len(text.splitlines()) < 250 or "<!-- Written by `python bench/reference.py docs`" in text
    if page.startswith("docs/"):
        assert page.removeprefix("docs/") in (ROOT / "mkdocs.yml").read_text()


def test_the_address_of_the_project_is_one_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    citation = re.search(
        r"^repository-code: \"?([^\"\s]+)", (ROOT / "CITATION.cff").read_text(), re.MULTILINE
    )
    assert (citation[1] if citation else "") == address.repository()
    told = {"Project-URL": ["Homepage, https://example.org", "Repository, https://example.org/code"]}
    monkeypatch.setattr(address, "metadata", lambda name: SimpleNamespace(get_all=told.get))
    assert address.on_config(SimpleNamespace(repo_url=None)).repo_url == "https://example.org/code"
    told.clear()
    assert address.on_config(SimpleNamespace(repo_url=None)).repo_url is None


def exists(name: str) -> bool:
    """Whether a dotted name such as warpzone.envs.rewards.RewardConfig can be imported."""
    module, *attributes = name.split(".")
    found = importlib.import_module(module)
    for attribute in attributes:
        module = f"{module}.{attribute}"
        if not hasattr(found, attribute):
            try:
                importlib.import_module(module)
            except ImportError:
                return False
        found = getattr(found, attribute)
    return True


def test_names_of_the_package_on_the_pages_exist() -> None:
    pages = [page for page in PAGES if "research" not in page.parts and page.name != "CHANGELOG.md"]
    names = {
        name for page in pages for name in re.findall(r"`(warpzone(?:\.\w+)+)\b(?!\.)", page.read_text())
    }
    assert len(names) > 15
    assert sorted(name for name in names if not exists(name)) == []


def test_the_table_of_info_has_every_key_with_its_type() -> None:
    text = (ROOT / "docs" / "environments.md").read_text()
    section = text.partition("## The info dictionary")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`.*?`) \| (.*?) \|", section, re.MULTILINE)
    told = {key: kind for keys, kind in rows for key in re.findall(r"`(\w+)`", keys)}
    envs = warpzone.MarioVectorEnv(1, stage="1-1", size=8, threads=1)
    envs.reset(seed=0)
    info = envs.step(np.zeros(1, np.int64))[-1]
    envs.close()
    kinds = {key: np.asarray(value).dtype.name for key, value in info.items() if key != "reward_terms"}
    assert told.pop("reward_terms") == "dict of float32"
    assert told == {key: "str" if kind.startswith("str") else kind for key, kind in kinds.items()}
