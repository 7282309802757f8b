"""Environments on gym-super-mario-bros and nes-py, with the vector interface, telemetry and rewards of our engine."""
