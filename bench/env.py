"""The native engine against nes-py: the same as `warpzone bench env`.

python bench/env.py [--rounds 5] [--seconds 1] [--num-envs 64] [--out results.json]
"""

from __future__ import annotations

import sys

from warpzone.cli.bench_env import run

if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
