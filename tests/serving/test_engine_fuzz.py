"""az-engine goes on after any line that it is sent, answers what is due, and needs no more memory for it."""

import os
from pathlib import Path

import pytest

from fuzz_lines import DIALECTS, fuzz

MANY_LINES = int(os.environ.get("AZPY_FUZZ_LINES", "2000000"))  # of each protocol in the slow test


@pytest.mark.parametrize(("lines", "seed"), [(2_000, 1), pytest.param(MANY_LINES, 2, marks=pytest.mark.slow)])
@pytest.mark.parametrize("protocol", DIALECTS)
def test_random_lines_do_not_end_the_engine(protocol: str, lines: int, seed: int, tmp_path: Path) -> None:
    fuzz(protocol, lines, seed, tmp_path)
