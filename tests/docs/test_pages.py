"""Links between the pages, both READMEs, and the limits that keep pages readable."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from .pages import PAGES, ROOT


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
