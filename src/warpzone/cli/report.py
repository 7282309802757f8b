"""`warpzone report RUN...`: one HTML page with curves, clear rates, throughput and videos."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import tyro

from warpzone.cli.export import run_folder
from warpzone.cli.flags import parse
from warpzone.cli.settings import DryRun, RunsFolder, writing
from warpzone.errors import ConfigError
from warpzone.run.stopping import EXIT_OK


@dataclass(frozen=True)
class Config(RunsFolder, DryRun):
    """Write a self-contained HTML page about one run, or comparing several."""

    runs: tyro.conf.Positional[tuple[Path, ...]] = ()
    """Names or folders of runs."""
    out: Path | None = None
    """HTML page to write; charts go into a folder beside it."""
    inline_video_mb: float = 4.0
    """Maximum size of videos embedded in the page, in MB."""


SETTINGS = {"": Config}


def run(argv: list[str]) -> int:
    args = parse(Config(), argv, "warpzone report")
    if not args.runs:
        raise ConfigError("name at least one run to report on")
    folders = [run_folder(one, args.runs_dir) for one in args.runs]
    out = args.out or default_page(folders)
    if args.dry_run:
        print(f"would write {out} about {', '.join(map(str, folders))}")
        return EXIT_OK
    # matplotlib takes a second to load, which the help text need not wait for.
    from warpzone.watch.report import write_report

    with writing(out):
        written = write_report(folders, out, inline_video_bytes=int(args.inline_video_mb * 2**20))
    print(f"wrote {out} and {len(written) - 1} charts in {out.with_suffix('')}")
    return EXIT_OK


def default_page(folders: list[Path]) -> Path:
    """In the run's folder; a comparison goes beside the first run's folder, so that it replaces no run's own page."""
    if len(folders) == 1:
        return folders[0] / "report.html"
    names = [folder.resolve().name for folder in folders]
    shown = [*names[:3], f"{len(names) - 3}_more"] if len(names) > 4 else names
    return folders[0].resolve().parent / f"report_{'_'.join(shown)}.html"
