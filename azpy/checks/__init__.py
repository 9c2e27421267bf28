"""Is a game right: rules that every position keeps, and the shortest line of play that breaks one."""
