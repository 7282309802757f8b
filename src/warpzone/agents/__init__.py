"""A trained policy that plays: weights files, evaluation, recording, the montage, the exhibition."""
