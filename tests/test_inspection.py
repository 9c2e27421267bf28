"""az-doctor --workers: what is wrong with a shared folder, before a worker starts there."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import azpy
from azpy import OnnxEvaluator, doctor
from azpy.cli.doctor import main
from azpy.fleet.channels.files import Files
from azpy.fleet.channels.folder import Folder
from azpy.fleet.fleet import Lineup, digest_of_run
from azpy.fleet.head import Head
from azpy.fleet.inspection import Finding, inspect_place
from azpy.games.names import make_game
from azpy.settings import Settings
from oracles import Clock
from test_fleet import settings
from test_onnx import make_model


@pytest.fixture(autouse=True)
def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("azpy.fleet.channels.files.BEAT", 0.02)


def look(path: Path) -> dict[str, Finding]:
    clock = Clock()
    return {finding.name: finding for finding in inspect_place(str(path), clock, clock.sleep)}


class Running:
    """A head at a folder, whose network is a small one with random weights."""

    def __init__(self, path: Path, model: bytes | None, **changes: Any) -> None:
        chosen = settings(workers=f"folder:{path}", **changes)
        start = make_game(chosen.game)
        self.path, self.folder = path, Folder(chosen, str(path))
        self.fleet = Head(chosen, start, self.folder)
        evaluator = azpy.UniformEvaluator() if model is None else OnnxEvaluator(model, game=start)
        self.fleet.play(Lineup([evaluator], model))

    def stands_still(self, **facts: Any) -> None:
        """Ends the counting; the head's file then has these facts."""
        assert self.folder._sign is not None
        self.folder._sign.close()
        head = self.path / "head"
        head.write_text(json.dumps(json.loads(head.read_text()) | facts))


@pytest.fixture(scope="module")
def model() -> bytes:
    start = make_game("tic_tac_toe")
    return make_model(shape=("batch", *start.obs_shape), actions=start.num_actions)


@pytest.fixture
def running(tmp_path: Path, model: bytes) -> Iterator[Running]:
    head = Running(tmp_path, model)
    yield head
    head.fleet.close()


def everything(path: Path) -> list[str]:
    names = [str(entry.relative_to(path)) for entry in path.rglob("*")]
    return sorted(name for name in names if name != ".tmp-head")  # the counter is being written


def test_a_place_without_az_train(tmp_path: Path) -> None:
    found = look(tmp_path)
    assert list(found) == ["folder", "az-train"]
    assert found["folder"].text == "it can be written and read"
    assert found["az-train"].text == "was never here"
    assert found["az-train"].advice == f"start az-train GAME --workers folder:{tmp_path}"
    assert not any(finding.is_fault for finding in found.values())
    assert everything(tmp_path) == []


def test_a_place_with_az_train(running: Running) -> None:
    before = everything(running.path)
    findings = list(inspect_place(str(running.path)))
    assert [finding.name for finding in findings] == ["folder", "az-train", "azpy", "game", "bits"]
    assert not any(finding.is_fault for finding in findings)
    texts = {finding.name: finding.text for finding in findings}
    assert texts["az-train"] == "is there: its counter moves"
    assert texts["azpy"] == f"{azpy.__version__}, as here"
    assert texts["game"] == "tic_tac_toe"
    assert texts["bits"] == "are those of az-train, in the network's answers"
    assert findings[3].advice == f"start a worker with: az-worker {running.path}"
    assert everything(running.path) == before


def test_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path / "nothing", tmp_path / "file"):
        (finding,) = inspect_place(str(path))
        assert finding.is_fault
        assert finding.text == f"{path} is no folder here"
    assert not (tmp_path / "nothing").exists()


def test_a_folder_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Files, "write", full)
    (finding,) = inspect_place(str(tmp_path))
    assert finding.is_fault
    assert finding.text == "it cannot be written: No space left on device"
    assert everything(tmp_path) == []


def test_an_az_train_that_stands_still_or_has_ended(running: Running) -> None:
    running.stands_still()
    found = look(running.path)
    assert found["az-train"].text == "its counter stood still for 10 seconds"
    assert "start az-train again" in found["az-train"].advice
    running.stands_still(ended=True)
    assert look(running.path)["az-train"].text == "its run has ended"


@pytest.mark.parametrize("facts", [{"version": "0.0.9"}, {"protocol": 0}])
def test_an_az_train_of_another_version(facts: dict[str, Any], running: Running) -> None:
    running.stands_still(**facts)
    found = look(running.path)
    assert found["azpy"].is_fault
    assert found["azpy"].advice == "install the same azpy on both machines"
    assert "bits" not in found


@pytest.mark.parametrize("facts", [{"run": "other"}, {"settings": {}}, {"settings": 5}, {"settings": {"game": "none"}}])
def test_a_run_that_cannot_be_played_here(facts: dict[str, Any], running: Running) -> None:
    running.stands_still(**facts)
    assert look(running.path)["game"].is_fault


def test_a_machine_that_gives_other_bits(running: Running) -> None:
    lineup = json.loads((running.path / "head").read_text())["lineup"]
    running.stands_still(lineup=lineup | {"answers": "0" * 64})
    found = look(running.path)["bits"]
    assert found.is_fault
    assert "gives other bits here" in found.text


def test_a_network_that_is_gone_is_no_fault(running: Running) -> None:
    for network in (running.path / "networks").iterdir():
        network.write_bytes(b"damaged")
    found = look(running.path)["bits"]
    assert not found.is_fault
    assert "is not there or is damaged" in found.text


def test_bits_of_a_run_that_needs_none_or_plays_no_network(tmp_path: Path, model: bytes) -> None:
    for name, network, changes, text in (
        ("free", model, {"deterministic": False}, "need not be equal"),
        ("uniform", None, {}, "nothing to compare"),
    ):
        head = Running(tmp_path / name, network, **changes)
        found = look(head.path)["bits"]
        assert text in found.text
        assert not found.is_fault
        head.fleet.close()


def test_a_game_in_python_is_not_imported(running: Running) -> None:
    running.stands_still()
    chosen = json.loads((running.path / "head").read_text())["settings"] | {"game": "no_such_module:Game"}
    running.stands_still(settings=chosen, run=digest_of_run(Settings(**chosen)))
    found = look(running.path)
    assert found["game"].advice == f"start a worker with: az-worker {running.path} no_such_module:Game"
    assert "imports no game in Python" in found["bits"].text


@pytest.mark.parametrize("kind", ["pipe", "link", "folder", "text", "list"])
def test_rubbish_in_the_place_of_the_head_is_said(kind: str, tmp_path: Path) -> None:
    head = tmp_path / "head"
    match kind:
        case "pipe":
            os.mkfifo(head)
        case "link":
            head.symlink_to("/dev/zero")
        case "folder":
            head.mkdir()
        case "text":
            head.write_text("no object")
        case "list":
            head.write_text("[]")
    assert look(tmp_path)["az-train"].is_fault


def test_a_stop_file_is_said(running: Running) -> None:
    (running.path / "stop").touch()
    assert look(running.path)["stop"].advice == f"delete {running.path / 'stop'}"


# The command


@pytest.fixture
def no_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the folder is looked at."""
    monkeypatch.setattr(doctor, "_try", lambda _: None)


@pytest.mark.parametrize("flags", [["--workers"], ["--workers", ""], ["--workers=folder:"]])
def test_without_a_place_the_flag_is_refused(flags: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(flags) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == "az-doctor: --workers needs the shared folder of the run: az-doctor --workers PLACE\n"


@pytest.mark.usefixtures("no_machine")
def test_the_command_prints_each_line_with_what_to_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--no-speed", "--workers", f"folder:{tmp_path}"]) == 0
    text = capsys.readouterr().out.partition(f"\nWorkers at {tmp_path}:\n")[2]
    assert text.startswith("  folder           it can be written and read")
    assert f"  az-train         was never here: start az-train GAME --workers folder:{tmp_path}\n" in text
    assert main(["--no-speed", "--workers", f"{tmp_path}/no"]) == 2
    capsys.readouterr()
    assert main(["--no-speed", "--json", "--workers", f"{tmp_path}/no"]) == 2
    (finding,) = json.loads(capsys.readouterr().out)["workers"]
    assert finding["is_fault"] is True
