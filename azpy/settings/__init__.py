"""The settings of a run, those that suit a game, and both as a file."""

from azpy.settings.run import Settings as Settings
