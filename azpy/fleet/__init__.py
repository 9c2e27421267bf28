"""Players of a run's games: in this process, or in worker processes. The head alone owns the run folder and the ids."""
