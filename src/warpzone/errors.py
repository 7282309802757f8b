"""The errors a user can cause. Each message is one sentence: what is wrong and what to do."""


class Error(Exception):
    """Anything the user can mend. The command line prints the message and exits with status 2."""


class RomError(Error):
    """The cartridge image is missing, damaged or of a kind the engine does not run."""


class ConfigError(Error, ValueError):
    """A setting is out of range or contradicts another."""


class CheckpointError(Error):
    """A checkpoint or snapshot is damaged, foreign or does not fit."""
