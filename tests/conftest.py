"""What all tests rely on."""

import signal
from collections.abc import Iterator

import pytest

from starts import Starts

# A shell that starts this in the background has Ctrl-C ignored, here and in every program that the tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def starts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Starts]:
    """Starts of az-train; making it takes seconds, each start a fraction of one."""
    with Starts(tmp_path_factory.mktemp("starts")) as started:
        yield started
