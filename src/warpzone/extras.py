"""The packages beyond the base install, and the extra of `pip install 'warpzone[extra]'` each comes with."""

from __future__ import annotations

EXTRA_OF = {
    **dict.fromkeys(
        (
            *("torch", "tyro", "rich", "pyarrow", "psutil", "pynvml", "safetensors", "av", "tensorboard"),
            *("matplotlib", "PIL", "fastapi", "uvicorn", "websockets"),
        ),
        "train",
    ),
    "wandb": "wandb",
    "optuna": "sweep",
    "sklearn": "sweep",
    "ray": "cluster",
}
"""By the name under which a package is imported."""


def what_to_install(error: ImportError, what: str) -> str | None:
    """The sentence for a package of an extra that is missing; None if anything else went wrong."""
    package = (error.name or "").partition(".")[0]
    if not isinstance(error, ModuleNotFoundError) or package not in EXTRA_OF:
        return None
    return f"{what} needs {package}, which is not installed: pip install 'warpzone[{EXTRA_OF[package]}]'."
