"""What is on the disk: the run folder, files that survive a crash, and readers of both."""
