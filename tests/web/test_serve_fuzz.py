"""az-serve goes on after any bytes and any message, and needs no more memory for them."""

import os
from typing import Any

import pytest

from fuzz_web import fuzz_requests, fuzz_sockets

MANY_MESSAGES = int(os.environ.get("AZPY_FUZZ_MESSAGES", "1000000"))  # of the slow test


@pytest.mark.parametrize(
    ("fuzz", "count", "seed"),
    [
        (fuzz_sockets, 2_000, 1),
        (fuzz_requests, 400, 1),
        pytest.param(fuzz_sockets, MANY_MESSAGES, 2, marks=pytest.mark.slow),
        pytest.param(fuzz_requests, MANY_MESSAGES // 20, 2, marks=pytest.mark.slow),
    ],
)
def test_random_messages_do_not_end_the_server(fuzz: Any, count: int, seed: int) -> None:
    fuzz(count, seed)
