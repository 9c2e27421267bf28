"""Games of two players: who they are, how they open, and what their scores mean."""
