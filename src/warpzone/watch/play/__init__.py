"""The page of `warpzone play`: a console with one player and any number of onlookers."""
