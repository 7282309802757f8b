"""Environments on other emulators than ours, behind the same vector interface, telemetry and rewards."""
