"""The command line of gym-super-mario-bros."""
