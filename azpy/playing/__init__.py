"""Games of one network: self-play as the settings say, the same game again, and how fast it goes."""
