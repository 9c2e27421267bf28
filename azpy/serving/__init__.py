"""Protocols of other programs: requests and their responses."""
