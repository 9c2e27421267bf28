"""What all tests rely on."""

import signal

# A shell that starts this in the background has Ctrl-C ignored, here and in every program that the tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)
