"""Matches: who plays, how the games open, and what the scores mean."""
