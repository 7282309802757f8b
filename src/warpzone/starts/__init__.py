"""Where episodes begin and what to practise: curriculum, exploration, trails, the reverse curriculum."""
