"""The address of the project, from `[project.urls]` in pyproject.toml: the one place where it is set."""

from __future__ import annotations

from importlib.metadata import metadata
from typing import Any


def repository() -> str:
    """The address of the repository as it was installed; empty while it has none."""
    urls = metadata("warpzone").get_all("Project-URL") or []
    return dict(url.split(", ", 1) for url in urls).get("Repository", "")


def on_config(config: Any) -> Any:
    """MkDocs asks this hook: every page of the website links to the repository, where there is an address."""
    if address := repository():
        config.repo_url = address
    return config
