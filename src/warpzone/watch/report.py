"""One self-contained HTML page about one or more runs."""

from __future__ import annotations

import base64
import html
import io
import json
import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from warpzone.watch.charts import charts
from warpzone.watch.durable import write_durably
from warpzone.watch.jsonl import Record, json_file
from warpzone.watch.metrics import OUTCOME_FILE, read_metrics

INLINE_VIDEO_BYTES = 4 * 1024 * 1024
_VIDEOS_PER_RUN = 6
_NAMES = ("run_name", "runs_dir", "dry_run", "fresh", "resume")
"""Settings that say nothing about how a run learns."""
_VIDEO_KINDS = {".mp4": "video/mp4", ".gif": "image/gif"}

_STYLE = """ body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0
1rem; color: #222; } table { border-collapse: collapse; } td, th { padding: .2rem .8rem; border-bottom: 1px
solid #ddd; text-align: right; } th:first-child, td:first-child { text-align: left; } img, video { max-width:
100%; } details { margin: 1rem 0; } pre { overflow: auto; background: #f6f6f6; padding: .6rem; } h2 {
margin-top: 2.5rem; }
"""


def write_report(
    runs: Sequence[Path], out: Path, *, inline_video_bytes: int = INLINE_VIDEO_BYTES
) -> list[Path]:
    """Write the page to `out` and each chart as a PNG into the folder beside it; return the paths written."""
    names = _names(runs)
    histories = {name: read_metrics(run) for name, run in zip(names, runs, strict=True)}
    written = []
    totals = {name: _totals(run, histories[name]) for name, run in zip(names, runs, strict=True)}
    configs = {name: json_file(run / "config.json") for name, run in zip(names, runs, strict=True)}
    body = [f"<h1>{html.escape(', '.join(names))}</h1>", _summary(totals)]
    body += [_evaluation(name, run) for name, run in zip(names, runs, strict=True)]
    body.append(_differences(configs))
    pictures = out.with_suffix("")
    pictures.mkdir(parents=True, exist_ok=True)
    for title, figure in charts(histories).items():
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", dpi=110)
        png = buffer.getvalue()
        picture = pictures / (re.sub(r"\W+", "_", title.lower()) + ".png")
        write_durably(picture, png)
        written.append(picture)
        body.append(f"<h2>{title}</h2>\n<img alt='{title}' src='{_data_url('image/png', png)}'>")
    for name, run in zip(names, runs, strict=True):
        body += [_videos(name, run, out, inline_video_bytes), _configuration(name, configs[name])]
    page = _page(", ".join(names), "\n".join(body))
    write_durably(out, page.encode())
    return [out, *written]


def _names(runs: Sequence[Path]) -> list[str]:
    """Folder names, or whole paths where two runs share one."""
    names = [run.resolve().name for run in runs]
    return names if len(set(names)) == len(names) else [str(run) for run in runs]


def _page(title: str, body: str) -> str:
    head = f"<meta charset='utf-8'><title>{html.escape(title)}</title><style>{_STYLE}</style>"
    made = f"<p><small>warpzone report, {time.strftime('%Y-%m-%d %H:%M')}</small></p>"
    return f"<!doctype html>\n<html lang='en'><head>{head}</head>\n<body>\n{body}\n{made}</body></html>\n"


def _totals(run: Path, records: Sequence[Record]) -> Record:
    """The last record; a checkpoint that was saved after it knows the updates and steps since then."""
    last = dict(records[-1]) if records else {}
    saved = json_file(run / "checkpoints" / "latest.json")
    update, step = saved.get("global_update"), saved.get("global_step")
    newer = isinstance(update, int) and update > last.get("update", -1)
    return {**last, "update": update, "global_step": step} if newer else last


def _summary(totals: dict[str, Record]) -> str:
    columns = {
        "update": "updates",
        "global_step": "steps",
        "avg_return": "mean return",
        "clear_rate_mean": "clear rate in training",
        "time_to_first_flag": "first flag after, s",
        "env_steps_per_sec": "steps/s",
    }
    rows = ["<tr><th>run</th>" + "".join(f"<th>{title}</th>" for title in columns.values()) + "</tr>"]
    for name, last in totals.items():
        cells = "".join(f"<td>{_shown(last.get(field))}</td>" for field in columns)
        rows.append(f"<tr><td>{html.escape(name)}</td>{cells}</tr>")
    return "<table>" + "".join(rows) + "</table>"


def _evaluation(name: str, run: Path) -> str:
    """What the run's last evaluation on fresh episodes found, if it had one."""
    found = json_file(run / OUTCOME_FILE).get("last_evaluation") or {}
    lines = [
        f"<li>{html.escape(stage)}: {100 * result['clear_rate']:.1f} % ({100 * result['low']:.1f} to "
        f"{100 * result['high']:.1f}) of {result['episodes']} fresh episodes</li>"
        for stage, result in found.get("stages", {}).items()
    ]
    when = f"{html.escape(name)}, evaluated after update {found.get('update')} (95 % interval):"
    return f"<p>{when}</p>\n<ul>{''.join(lines)}</ul>" if lines else ""


def _shown(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "-"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4g}"


def _videos(name: str, run: Path, out: Path, inline_bytes: int) -> str:
    found = [path for path in (run / "videos").glob("*") if path.suffix in _VIDEO_KINDS and path.is_file()]
    newest = sorted(found, key=lambda path: path.stat().st_mtime, reverse=True)[:_VIDEOS_PER_RUN]
    if not newest:
        return ""
    shown = "\n".join(_video(path, out, inline_bytes) for path in newest)
    return f"<h2>Videos of {html.escape(name)}</h2>\n{shown}"


def _video(path: Path, out: Path, inline_bytes: int) -> str:
    label = html.escape(path.name)
    if path.stat().st_size > inline_bytes:
        return f"<p><a href='{html.escape(_relative(path, out), quote=True)}'>{label}</a></p>"
    source = _data_url(_VIDEO_KINDS[path.suffix], path.read_bytes())
    if path.suffix == ".gif":
        return f"<p><img alt='{label}' src='{source}'><br>{label}</p>"
    return f"<p><video controls loop src='{source}'></video><br>{label}</p>"


def _relative(path: Path, out: Path) -> str:
    try:
        return path.resolve().relative_to(out.resolve().parent).as_posix()
    except ValueError:
        return path.resolve().as_uri()


def _differences(configs: dict[str, dict[str, Any]]) -> str:
    """A table of the settings that differ between the runs, with a warning where the stages do."""
    flat = {
        name: {
            field: value
            for part in config.values()
            if isinstance(part, dict)
            for field, value in part.items()
            if field not in _NAMES
        }
        for name, config in configs.items()
    }
    fields = dict.fromkeys(field for settings in flat.values() for field in settings)
    differing = [f for f in fields if len({json.dumps(settings.get(f)) for settings in flat.values()}) > 1]
    if not differing:
        return ""
    warning = ""
    if set(differing) & {"world", "stage", "stages", "random_stage", "stage_span"}:
        warning = "<p><strong>These runs train on different stages.</strong></p>"
    head = "".join(f"<th>{html.escape(name)}</th>" for name in flat)
    rows = [
        f"<tr><td>{field}</td>"
        + "".join(f"<td>{html.escape(str(settings.get(field, '-')))}</td>" for settings in flat.values())
        + "</tr>"
        for field in differing
    ]
    table = f"<table><tr><th>setting</th>{head}</tr>{''.join(rows)}</table>"
    return f"{warning}<h2>Settings that differ</h2>{table}"


def _configuration(name: str, config: dict[str, Any]) -> str:
    if not config:
        return ""
    text = html.escape(json.dumps(config, indent=2))
    return f"<details><summary>Configuration of {html.escape(name)}</summary><pre>{text}</pre></details>"


def _data_url(kind: str, data: bytes) -> str:
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"
