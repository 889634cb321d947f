"""Who plays: agents, what they remember and say, what they may spend."""
