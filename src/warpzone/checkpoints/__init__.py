"""Checkpoints: format, sidecar, saving, finding, repairing."""
