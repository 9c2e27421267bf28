"""Who comes in from outside: requests and what they are answered with."""
