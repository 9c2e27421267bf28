"""The loop: play games, fit the network, export it, measure it, and begin again."""
