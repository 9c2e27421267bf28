"""Commands. Each parses its arguments, prints, and leaves the work to the modules above; imported by nobody."""
