"""What the machine gives this process: cores and memory, less the limits of control groups."""

import errno
import os
from pathlib import Path

import pytest

from azpy import system
from azpy.settings.run import combine


@pytest.fixture
def cgroups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine of 64 cores, and its folder of control groups."""
    monkeypatch.setattr(system, "_CGROUPS", tmp_path)
    monkeypatch.setattr(system, "_MEMBERSHIP", tmp_path / "membership")
    monkeypatch.setattr(system, "allowed_cores", lambda: 64)
    return tmp_path


def test_a_container_gets_pipelines_by_its_quota(cgroups: Path) -> None:
    assert combine({"game": "pig"}).pipelines == 64
    (cgroups / "membership").write_text("0::/\n")
    (cgroups / "cpu.max").write_text("200000 100000\n")
    assert combine({"game": "pig"}).pipelines == 2
    (cgroups / "cpu.max").write_text("450000 100000\n")
    assert combine({"game": "pig"}).pipelines == 4
    (cgroups / "cpu.max").write_text("50000 100000\n")
    assert system.usable_cores() == 1


def test_control_groups_limit_cores_in_both_versions(cgroups: Path) -> None:
    def quota(membership: str) -> float | None:
        (cgroups / "membership").write_text(membership)
        return system.cpu_quota()

    assert quota("0::/\n") is None
    (cgroups / "a/b").mkdir(parents=True)
    (cgroups / "a/b/cpu.max").write_text("max 100000\n")
    (cgroups / "a/cpu.max").write_text("150000 100000\n")  # the limit of a group around ours
    assert quota("0::/a/b\n") == 1.5
    assert quota("0::/elsewhere\n") is None
    (cgroups / "cpu").mkdir()  # version 1
    (cgroups / "cpu/cpu.cfs_quota_us").write_text("200000\n")
    (cgroups / "cpu/cpu.cfs_period_us").write_text("100000\n")
    assert quota("4:cpu,cpuacct:/docker/x\n") == 2.0
    (cgroups / "cpu/cpu.cfs_quota_us").write_text("-1\n")
    assert quota("4:cpu,cpuacct:/docker/x\n") is None


def test_control_groups_limit_memory(cgroups: Path) -> None:
    (cgroups / "membership").write_text("")
    for text, limit in (("max\n", None), ("1073741824\n", 2**30), ("9223372036854771712\n", None)):
        (cgroups / "memory.max").write_text(text)
        assert system.memory_limit() == limit


@pytest.mark.skipif(not hasattr(os, "O_DIRECTORY"), reason="Windows syncs no folders")
def test_a_file_system_without_folder_sync_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails_with(number: int) -> None:
        def fail(_: int) -> None:
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr(os, "fsync", fail)

    fails_with(errno.EINVAL)
    system.sync_folder(tmp_path)
    fails_with(errno.EIO)
    with pytest.raises(OSError, match="Input/output error"):
        system.sync_folder(tmp_path)
