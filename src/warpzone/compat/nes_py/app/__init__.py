"""The command line of nes-py."""
