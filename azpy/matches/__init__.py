"""Matches: players, openings, and what the scores mean."""
