"""`make wheels`: wheels for machines that are not here, cross-compiled with Zig, checked and played."""
