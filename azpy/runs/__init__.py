"""The run folder, files that survive a crash, and readers of both."""
