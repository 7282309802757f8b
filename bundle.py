"""`make bundle`: all wheels for an install without internet, in one folder.

The wheel of warpzone itself is built for this machine, so build on the target's platform or in its container;
the dependencies can be downloaded for another platform.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent


def pip(*arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "pip", *arguments], check=True, cwd=ROOT)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", default="current", help="a platform tag such as manylinux_2_28_x86_64")
    parser.add_argument("--python", default=f"{sys.version_info.major}.{sys.version_info.minor}")
    parser.add_argument("--out", type=Path, default=ROOT / "bundle")
    parser.add_argument("--extra", default="train", help="train, all, or none for environments alone")
    options = parser.parse_args()
    out = options.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    pip("wheel", "--no-deps", "--wheel-dir", str(out), ".")
    wheel = max(out.glob("warpzone-*.whl"), key=lambda path: path.stat().st_mtime)
    extra = "" if options.extra == "none" else f"[{options.extra}]"
    constraints = ["--constraint", "constraints.txt"]
    if options.target == "current":
        # Source distributions among the dependencies become wheels, too.
        pip("wheel", *constraints, "--wheel-dir", str(out), f"{wheel}{extra}")
    else:
        wanted = ["--platform", options.target, "--python-version", options.python, "--only-binary", ":all:"]
        pip("download", *constraints, *wanted, "--dest", str(out), f"{wheel}{extra}")
    print(f"{len(list(out.glob('*.whl')))} wheels in {out}")
    print(f"on the other machine: pip install --no-index --find-links bundle 'warpzone{extra}'")


if __name__ == "__main__":
    main()
