"""az-serve goes on after any bytes and any message, and needs no more memory for them."""

import os

import pytest

from fuzz_web import fuzz_requests, fuzz_sockets

MANY_MESSAGES = int(os.environ.get("AZPY_FUZZ_MESSAGES", "1000000"))  # of the slow test


def test_messages_that_nobody_should_send_are_survived() -> None:
    fuzz_sockets(2_000, 1)


def test_requests_that_nobody_should_send_are_survived() -> None:
    fuzz_requests(400, 1)


@pytest.mark.slow
def test_a_million_messages_that_nobody_should_send_are_survived() -> None:
    fuzz_sockets(MANY_MESSAGES, 2)


@pytest.mark.slow
def test_many_requests_that_nobody_should_send_are_survived() -> None:
    fuzz_requests(MANY_MESSAGES // 20, 2)
