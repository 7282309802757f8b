"""A window for frames."""

from warpzone.compat.viewer import ImageViewer

__all__ = ["ImageViewer"]
