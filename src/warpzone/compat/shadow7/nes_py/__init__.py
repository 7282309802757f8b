"""Stands before the real package on the path of processes that `warpzone.compat` has been installed in."""

from warpzone.compat.installation import take_over

take_over(7)
