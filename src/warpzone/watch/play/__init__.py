"""The page of `warpzone play`: an emulator with one player and any number of viewers."""
