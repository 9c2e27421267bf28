"""Checks of a game: rules for every position, and the shortest line of play that breaks one."""
