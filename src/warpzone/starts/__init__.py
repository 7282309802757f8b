"""Where episodes start and what to practise: curriculum, exploration, trails, the reverse curriculum."""
