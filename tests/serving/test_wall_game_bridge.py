"""The Wall Game as the public program has it: its JSON and its turns, and the lines in which it asks az-engine.

Every request has one answer, and games do not mix.
"""

import copy
import itertools
import json
import random
import threading
from collections.abc import Iterator
from typing import Any

import pytest

import azpy
from azpy.errors import RequestError
from azpy.serving.models import open_player
from azpy.serving.wall_game import LAST_TURN, MOST_SESSIONS, WallGame, apply_move, move_text, state_of, winning_action
from talks import PATIENCE, JsonTalk


def standard(width: int = 8, height: int = 8) -> dict[str, Any]:
    """What the public program sends at the start of a game; cells are [row, column]."""
    return {
        "variant": "standard",
        "boardWidth": width,
        "boardHeight": height,
        "initialState": {
            "pawns": {
                "p1": {"cat": [0, 0], "mouse": [height - 1, 0]},
                "p2": {"cat": [0, width - 1], "mouse": [height - 1, width - 1]},
            },
            "walls": [],
        },
    }


def classic(width: int = 8, height: int = 8) -> dict[str, Any]:
    """The home of player 1 is where player 1's cat runs to: the corner across the board."""
    config = standard(width, height)
    config["variant"] = "classic"
    config["initialState"]["pawns"] = {
        "p1": {"cat": [0, 0], "home": [height - 1, width - 1]},
        "p2": {"cat": [0, width - 1], "home": [height - 1, 0]},
    }
    return config


def with_turn(config: dict[str, Any], player: int, *taken: dict[str, Any]) -> dict[str, Any]:
    config = copy.deepcopy(config)
    config["initialState"]["turn"] = {"playerId": player, "actionsTaken": list(taken)}
    return config


def positioned() -> dict[str, Any]:
    """Eight columns and five rows, all pieces and walls in places of their own.

    Row 2 from the top is row 3 from the bottom; column 4 is e.
    """
    config = standard(8, 5)
    config["initialState"] = {
        "pawns": {"p1": {"cat": [0, 1], "mouse": [4, 2]}, "p2": {"cat": [1, 7], "mouse": [3, 6]}},
        "walls": [
            {"cell": [2, 4], "orientation": "vertical"},
            {"cell": [1, 3], "orientation": "horizontal", "playerId": 2},
        ],
    }
    return config


POSITIONED = "cats b5 h4 mice c1 g2 walls >e3 ^d4"


def changed(config: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """The config with another value at a path such as "initialState.walls.0.cell"."""
    config = copy.deepcopy(config)
    *way, last = path.split(".")
    at: Any = config
    for name in way:
        at = at[int(name) if isinstance(at, list) else name]
    at[int(last) if isinstance(at, list) else last] = value
    return config


CAT = {"type": "cat", "source": [0, 0], "target": [0, 1]}
MOUSE = {"type": "mouse", "source": [3, 7], "target": [3, 6]}
WALL = {"type": "wall", "target": [1, 3], "wallOrientation": "horizontal"}
ON_THE_GOAL = changed(classic(3, 3), "initialState.pawns.p1.home", [0, 2])  # one step away from it
CAUGHT = {"p1": {"cat": [0, 3], "mouse": [4, 0]}, "p2": {"cat": [4, 2], "mouse": [0, 4]}}  # by Red in one step
WALLED = changed(standard(12, 10), "initialState.walls", [{"cell": [9, 0], "orientation": "horizontal"}])


# Configs and turns


@pytest.mark.parametrize(
    ("config", "text"),
    [
        (standard(), "cats a8 h8 mice a1 h1 turn 1 red"),
        (positioned(), f"{POSITIONED} turn 1 red"),
        (changed(with_turn(positioned(), 1), "initialState.turn", None), f"{POSITIONED} turn 1 red"),
        (with_turn(positioned(), 2), f"{POSITIONED} turn 1 blue"),
        (with_turn(positioned(), 1, CAT), f"{POSITIONED} turn 1 red second not Ca5"),
        (with_turn(positioned(), 2, MOUSE), f"{POSITIONED} turn 1 blue second not Mh2"),
        (with_turn(positioned(), 2, WALL), f"{POSITIONED} turn 1 blue second"),
        (ON_THE_GOAL, "cats a3 c3 mice a1 c3 turn 1 red"),  # homes are the mice that the cats hunt
        ({**WALLED, "variant": "freestyle"}, "cats a10 l10 mice a1 l1 walls ^a1 turn 1 red"),
    ],
)
def test_a_config_is_the_position_that_it_describes(config: dict[str, Any], text: str) -> None:
    assert state_of(config).to_text() == text


def test_the_config_of_a_start_is_the_start_of_azpys_game() -> None:
    assert state_of(standard()).key() == azpy.make_game("wall_game").key()
    assert state_of(classic()).key() == azpy.make_game("wall_game", variant="classic").key()


@pytest.mark.parametrize(("width", "height"), [(8, 8), (4, 4), (13, 10), (12, 9)])
def test_freestyle_on_another_board_is_standard(width: int, height: int) -> None:
    config = changed(standard(width, height), "initialState.pawns.p2.mouse", [1, 1])
    same, state = state_of(config), state_of({**config, "variant": "freestyle"})
    assert (state.game, state.to_text()) == (same.game, same.to_text())
    assert "freestyle" not in state.game
    assert state_of({**WALLED, "variant": "freestyle"}).game.startswith("wall_game(variant=freestyle")


@pytest.mark.parametrize(
    ("config", "text", "after"),
    [
        (standard(), "Cb7", "cats b7 h8 mice a1 h1 turn 1 blue"),
        (standard(), "Cc8", "cats c8 h8 mice a1 h1 turn 1 blue"),
        (standard(), "Cb8.Ma2", "cats b8 h8 mice a2 h1 turn 1 blue"),
        (standard(), ">e4.Cb8", "cats b8 h8 mice a1 h1 walls >e4 turn 1 blue"),
        (standard(), ">e4.^e4", "cats a8 h8 mice a1 h1 walls >e4 ^e4 turn 1 blue"),
        (standard(), ">e4", "cats a8 h8 mice a1 h1 walls >e4 turn 1 blue"),
        (standard(), "Mb1", "cats a8 h8 mice b1 h1 turn 1 blue"),
        (standard(), "---", "cats a8 h8 mice a1 h1 turn 1 blue"),
        (with_turn(positioned(), 2), "Ch3.Mg1", "cats b5 h3 mice c1 g1 walls >e3 ^d4 turn 2 red"),
        (with_turn(positioned(), 1, CAT), "Cc5", "cats c5 h4 mice c1 g2 walls >e3 ^d4 turn 1 blue"),
        (with_turn(positioned(), 2, WALL), "---", f"{POSITIONED} turn 2 red"),
    ],
)
def test_a_turn_has_two_actions_or_fewer(config: dict[str, Any], text: str, after: str) -> None:
    start = state_of(config)
    before = start.to_text()
    assert apply_move(start, text).to_text() == after
    assert start.to_text() == before


@pytest.mark.parametrize(
    ("config", "moves", "one_move_rule", "outcome"),
    [
        (ON_THE_GOAL, "Cc3", False, 1),
        (classic(3, 3), "--- Cb2 --- Ca1", False, -1),
        (changed(standard(5, 5), "initialState.pawns", CAUGHT), "Ce5", False, 1),
        (changed(standard(5, 5), "initialState.pawns", CAUGHT), "Ce5", True, 0),  # one-move draws are of the past
        (ON_THE_GOAL, "Cc3", True, 1),  # and not in classic
    ],
)
def test_a_capture_ends_the_game(config: dict[str, Any], moves: str, one_move_rule: bool, outcome: int) -> None:
    state = state_of(config, one_move_rule=one_move_rule)
    for move in moves.split():
        assert not state.is_terminal
        state = apply_move(state, move)
    assert (state.is_terminal, state.outcome()) == (True, outcome)


NO_TURNS: list[Any] = ["", " ", "Cb7 Cg7", "Cb7.", ".Cb7", "Cb8.Cb7.Cb6", "Cb8.Ca8", "Cc6", "Ca8", "cb7", "CB7", "Cb07"]
NO_TURNS += ["Ci9", ">h4", "^a8", ">e4.>e4", "end_turn", "----", "--", "---.Cb7", "Cb7.---", "cats", "undrawn"]
NO_TURNS += ["start1", "Cb07", "Cb7\n", "\uff23b7", "Cb\u0667", "Cb7" * 20_000, "\ud800", None, 7, ["Cb7"], True]


def test_text_that_is_not_a_turn_is_refused() -> None:
    start = state_of(standard())
    with pytest.raises(RequestError, match="move: word 1"):
        apply_move(state_of(with_turn(positioned(), 1, CAT)), "Cc5.>a1")
    for text in NO_TURNS:
        with pytest.raises(RequestError, match=r"^move: ") as raised:
            apply_move(start, text)
        assert len(str(raised.value)) < 400


def test_nothing_is_played_after_the_end() -> None:
    start = azpy.make_game("wall_game", width=3, height=3)
    won = azpy.parse_state(start, "cats c1 a3 mice b1 c1 turn 2 blue")
    for text in ("Ca2", "---"):
        with pytest.raises(RequestError, match="over"):
            apply_move(won, text)


def tiny(cat: list[int], home: list[int], other_cat: list[int]) -> dict[str, Any]:
    """Four cells with a wall above the lower left one; the cat and the home of player 1, and player 2's cat."""
    config = classic(2, 2)
    config["initialState"]["pawns"] = {"p1": {"cat": cat, "home": home}, "p2": {"cat": other_cat, "home": [0, 0]}}
    return changed(config, "initialState.walls", [{"cell": [1, 0], "orientation": "horizontal"}])


def test_a_capture_wins_in_a_turn_of_one_action_too() -> None:
    # A ring around nothing: every wall would cut a cat off, and the cat may not step back.
    config = tiny([0, 1], [0, 0], [1, 0])
    state = state_of(config)
    capture = state.parse_actions("Ca2")
    assert move_text(state, capture) == "Ca2"
    assert apply_move(state, "Ca2").outcome() == 1
    result = azpy.Search(azpy.UniformEvaluator(), simulations=50).run(state)
    assert result.action == capture[0]
    # Blue's turn ends after its one action, and Red's goes on from there.
    state = state_of(with_turn(config, 2))
    after = apply_move(state, "Cb1")
    assert after.turn == 0
    assert move_text(state, state.parse_actions("Cb1")) == "Cb1"


def test_a_capture_that_a_second_action_would_give_up_is_found() -> None:
    # One path joins all cells, so no wall is legal. After the capture the cat could only go on.
    state = state_of(tiny([0, 1], [1, 1], [1, 0]))
    action = winning_action(state)
    assert action is not None
    half = state.clone()
    half.play(action)
    assert [half.action_name(one) for one in half.legal_actions()] == ["Ca1"]
    assert move_text(state, [action]) == "Cb1"
    assert apply_move(state, "Cb1").outcome() == 1
    assert winning_action(state_of(standard())) is None
    # After half a turn, and for player 2; a draw is no win.
    config = changed(standard(5, 5), "initialState.pawns", CAUGHT | {"p1": {"cat": [0, 3], "mouse": [4, 1]}})
    step = {"type": "cat", "source": [4, 3], "target": [4, 2]}
    for whole in (with_turn(config, 2), with_turn(config, 2, step)):
        state = state_of(whole)
        action = winning_action(state)
        assert action is not None
        assert apply_move(state, move_text(state, [action])).outcome() == -1
    assert winning_action(state_of(config)) is not None
    assert winning_action(state_of(config, one_move_rule=True)) is None


def test_a_player_who_cannot_act_ends_the_turn() -> None:
    config = tiny([1, 0], [1, 1], [1, 1])
    step = {"type": "cat", "source": [1, 1], "target": [1, 0]}
    state = state_of(with_turn(config, 1, step))
    assert state.is_terminal
    assert state.legal_actions() == []
    assert move_text(state, []) == "---"
    assert apply_move(state, "---").turn == 1
    with pytest.raises(RequestError, match=r"move: .*no second action is legal"):
        apply_move(state, "Cb1")


def test_actions_become_the_text_of_one_turn() -> None:
    start = state_of(standard())
    for line, text in [("Cb8 Cb7", "Cb7"), (">e4 Cb8", "Cb8.>e4"), ("^a1 >e4", ">e4.^a1"), ("Ma2", "Ma2"), ("", "---")]:
        assert move_text(start, start.parse_actions(line)) == text
    with pytest.raises(ValueError, match="got several turns: Cb7 >e4"):
        move_text(start, start.parse_actions("Cb7 >e4"))
    with pytest.raises(ValueError, match="illegal action 63"):
        move_text(start, [63])
    half = azpy.parse_state(start, "Cb8")
    assert move_text(half, half.parse_actions("Cb7")) == "Cb7"
    with pytest.raises(ValueError, match="got several turns"):
        move_text(half, half.parse_actions("Cb7 Cg8"))


def without_turn(state: azpy.State) -> tuple[str, str]:
    """The position, whatever the number of its turn."""
    before, _, rest = state.to_text().partition(" turn ")
    return before, rest.partition(" ")[2]


def random_turns(state: azpy.State, rng: random.Random) -> Iterator[tuple[list[int], azpy.State]]:
    """Turns of a game and the position after each, some of one action or none; three in four actions are steps."""
    walls = 2 * (state.observation().size // 9)
    while not state.is_terminal:
        mover, actions, after = state.turn, list[int](), state.clone()
        for _ in range(rng.choice((0, 1, 2, 2, 2, 2, 2, 2))):
            if after.turn == mover:
                legal = after.legal_actions()
                steps = [action for action in legal if action >= walls]
                actions.append(rng.choice(steps if steps and rng.random() < 0.75 else legal))
                after.play(actions[-1])
        if after.turn == mover:
            after = azpy.parse_state(after, "end_turn")
        yield actions, after
        state = after


@pytest.mark.parametrize("make", [standard, classic])
def test_games_played_by_text_are_the_games_played_by_actions(make: Any) -> None:
    rng, turns, short, ended = random.Random(8), 0, 0, 0
    for game in range(100):
        width, height = rng.choice([(2, 2), (3, 3), (4, 3), (3, 6), (5, 5), (8, 8)])
        config = with_turn(make(width, height), rng.choice((1, 2)))
        played = by_text = state_of(config, one_move_rule=game % 2 == 1)
        for actions, after in random_turns(played, rng):
            text = move_text(played, actions)
            by_text = apply_move(by_text, text)
            if by_text.key() != after.key():
                # Only the number of the turn differs, of a game that goes on for long.
                assert without_turn(by_text) == without_turn(after)
                assert int(after.to_text().partition(" turn ")[2].split()[0]) > LAST_TURN
            played, turns, short = after, turns + 1, short + (len(actions) < 2)
        capped = " turn 101 " in played.to_text()
        assert by_text.is_terminal != capped
        assert capped or by_text.outcome() == played.outcome()
        ended += by_text.is_terminal
    assert turns > 500
    assert short > 100
    assert ended > 80


def test_a_game_goes_on_beyond_any_number_of_turns() -> None:
    state, numbers = state_of(standard()), set()
    for turn in range(3 * 2 * LAST_TURN):
        # Both cats go to and fro.
        state = apply_move(state, ["Cb7", "Cg7", "Ca8", "Ch8"][turn % 4])
        assert not state.is_terminal
        assert state.turn == (turn + 1) % 2
        numbers.add(int(state.to_text().split(" turn ")[1].split()[0]))
    assert numbers == set(range(1, LAST_TURN + 1))
    # A draw by the number of turns alone is none here.
    capped = azpy.parse_state("wall_game", "cats a8 h8 mice a1 h1 turn 101 red")
    assert capped.is_terminal
    assert apply_move(capped, "Cb7").to_text() == "cats b7 h8 mice a1 h1 turn 1 blue"
    last = azpy.parse_state("wall_game", "cats a8 h8 mice a1 h1 turn 100 blue")
    assert apply_move(last, "Cg7").to_text() == "cats a8 g7 mice a1 h1 turn 2 red"


# Wrong configs


FULL = with_turn(positioned(), 1, {"type": "cat", "source": [0, 0], "target": [0, 1], "wallOrientation": None})
ACTION = "initialState.turn.actionsTaken.0"


@pytest.mark.parametrize(
    ("path", "value", "error"),
    [
        ("variant", "animal-cycle", "variant: expected standard, classic or freestyle, got 'animal-cycle'"),
        ("variant", "classic", "initialState.pawns.p1.home is missing"),
        ("boardWidth", 21, "boardWidth: expected a whole number from 2 to 20, got 21"),
        ("boardHeight", True, "boardHeight: expected a whole number from 2 to 20, got True"),
        ("boardWidth", 7, "initialState.pawns.p2.cat[1]: expected a whole number from 0 to 6, got 7"),
        ("initialState.pawns", [], "initialState.pawns: expected an object, got []"),
        ("initialState.pawns.p2.mouse", [5, 0], "initialState.pawns.p2.mouse[0]: expected a whole number from 0 to 4"),
        ("initialState.pawns.p1.cat", [1], "initialState.pawns.p1.cat: expected a cell [row, column], got 1 numbers"),
        ("initialState.pawns.p1.cat", "b5", "initialState.pawns.p1.cat: expected a list, got 'b5'"),
        ("initialState.walls.1", 3, "initialState.walls[1]: expected an object, got 3"),
        ("initialState.walls.1.orientation", "up", "initialState.walls[1].orientation: expected vertical or"),
        ("initialState.walls.0.cell", [2, 7], 'between two cells of the board, or turn, got ">h3"'),
        ("initialState.walls.1.cell", [0, 3], 'between two cells of the board, or turn, got "^d5"'),
        ("initialState.turn.playerId", True, "turn.playerId: expected a whole number from 1 to 2, got True"),
        ("initialState.turn.actionsTaken", 2 * [{"type": "cat"}], "actionsTaken: expected at most one action, got 2"),
        (f"{ACTION}.type", "dog", "actionsTaken[0].type: expected cat, mouse or wall, got 'dog'"),
        (f"{ACTION}.type", "wall", "actionsTaken[0].wallOrientation: expected vertical or horizontal, got None"),
        (f"{ACTION}.target", [0, 2], "actionsTaken[0].target: player 1's cat is at b5, not c5"),
        (f"{ACTION}.source", [3, 3], 'initialState: expected the step back of the first action, got "Cd2"'),
        (f"{ACTION}.source", None, "actionsTaken[0].source: expected a list, got None"),
        ("initialState.turn.playerId", 2, "actionsTaken[0].target: player 2's cat is at h4, not b5"),
    ],
)
def test_an_error_names_the_field(path: str, value: Any, error: str) -> None:
    state_of(FULL)
    with pytest.raises(RequestError) as raised:
        state_of(changed(FULL, path, value))
    assert error in str(raised.value)


def test_positions_that_cannot_be_played_are_refused() -> None:
    wall = {"cell": [2, 4], "orientation": "vertical"}
    with pytest.raises(RequestError, match="initialState: the wall >e3 is given twice"):
        state_of(changed(positioned(), "initialState.walls", [wall, wall]))
    shut_in = [{"cell": [0, 0], "orientation": "vertical"}, {"cell": [1, 0], "orientation": "horizontal"}]
    with pytest.raises(RequestError, match="initialState: walls leave red's cat no path"):
        state_of(changed(standard(), "initialState.walls", shut_in))
    with pytest.raises(RequestError, match=r"initialState.pawns: a cat stands on its goal"):
        state_of(changed(standard(), "initialState.pawns.p1.cat", [7, 7]))
    with pytest.raises(RequestError, match="the wall >a5 is not among"):
        state_of(with_turn(positioned(), 1, {"type": "wall", "target": [0, 0], "wallOrientation": "vertical"}))


JUNK: list[Any] = [None, True, -1, 0, 1, 7, 10**30, 1.5, float("nan"), "", "cat", "\ud800", "x" * 10**5, [], [[]], {}]
JUNK += [[0, 0], [0, 1, 2], [True, 0], {"cell": [0, 0]}, "standard", "classic", "horizontal"]
JUNK.append(json.loads("[" * 60 + "]" * 60))


def places(value: Any, way: str = "") -> Iterator[str]:
    """The paths, as `changed` takes them, of all that a config holds."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, part in inside:
        yield f"{way}{name}"
        yield from places(part, f"{way}{name}.")


def test_wrong_configs_raise_nothing_but_the_named_error() -> None:
    refused = list[str]()
    for value in JUNK:
        with pytest.raises(RequestError):
            state_of(value)
    for way, value in itertools.product(places(FULL), JUNK):
        try:
            state = state_of(changed(FULL, way, value))
        except RequestError as error:
            refused.append(str(error))
        else:
            assert apply_move(state, "---").turn in (0, 1, azpy.TERMINAL)
    assert all(len(text) < 300 and "\n" not in text for text in refused)
    assert 800 < len(refused) < 1_100


# Lines ----------------------------------------------------------------------------------------------------------------


CONFIG = standard(5, 5)


class Server(JsonTalk):
    """The other side: sends requests about its games."""

    key = "bgsId"

    def request(self, kind: str, identity: str, **fields: Any) -> None:
        self.send(type=kind, bgsId=identity, **fields)

    def ask(self, kind: str, identity: str, **fields: Any) -> dict[str, Any]:
        self.request(kind, identity, **fields)
        return self.receive(identity)


def server_of(player: str, kind: type[WallGame] = WallGame) -> Server:
    return Server(lambda talk: kind({"bot": open_player(player, "wall_game", 1)}, talk).run())


@pytest.fixture
def server() -> Iterator[Server]:
    gui = server_of("uniform:12")
    yield gui
    gui.close()


def test_whole_games_are_played_and_every_move_is_legal(server: Server) -> None:
    rng = random.Random(2)
    for game in range(3):
        name = f"game {game}"
        started = {"type": "game_session_started", "bgsId": name, "success": True, "error": ""}
        assert server.ask("start_game_session", name, botId="bot", config=CONFIG) == started
        state, ply = state_of(CONFIG), 0
        while not state.is_terminal and ply < 80:
            if ply % 2 == game % 2:
                answer = server.ask("evaluate_position", name, expectedPly=ply)
                assert (answer["success"], answer["ply"], answer["error"]) == (True, ply, "")
                assert -1 <= answer["evaluation"] <= 1
                move = answer["bestMove"]
            else:
                actions = [rng.choice(state.legal_actions())]
                after = state.clone()
                after.play(actions[0])
                if not after.is_terminal and after.turn == state.turn:
                    actions.append(rng.choice(after.legal_actions()))
                move = move_text(state, actions)
            state, ply = apply_move(state, move), ply + 1
            answer = server.ask("apply_move", name, expectedPly=ply - 1, move=move)
            assert answer == {"type": "move_applied", "bgsId": name, "success": True, "error": "", "ply": ply}
        assert server.ask("evaluate_position", name, expectedPly=ply)["success"]
        assert server.ask("end_game_session", name)["success"]


def test_odd_ids_and_bytes_are_returned_unchanged(server: Server) -> None:
    for name in ("\u00a0\u2028\u200b", "\U0001f468\u200d\U0001f469", '[["{{'):
        for ascii_only in (False, True):
            server.say(json.dumps({"type": "end_game_session", "bgsId": name}, ensure_ascii=ascii_only))
            assert server.receive()["bgsId"] == name
    server._write.write(b'{"type":"end_game_session","bgsId":"\xff"}\n')
    server.say('{"type":"end_game_session","bgsId":"\0"}')
    assert ["UTF-8" in server.receive()["error"], server.receive()["type"]] == [True, "error"]


def test_requests_keep_their_order_and_the_end_answers_all() -> None:
    server = server_of("uniform:5")
    names = [f"game {number}" for number in range(MOST_SESSIONS)]
    for name in names:
        server.request("start_game_session", name, botId="bot", config=CONFIG)
        server.request("evaluate_position", name, expectedPly=0)
        server.request("apply_move", name, expectedPly=0, move="Cb5.>c3")
        server.request("evaluate_position", name, expectedPly=1)
    for _ in range(4 * MOST_SESSIONS):
        server.receive()
    server.request("start_game_session", "one more", botId="bot", config=CONFIG)
    assert server.receive()["error"] == f"Maximum session limit reached ({MOST_SESSIONS})"
    for name in names:
        server.request("evaluate_position", name, expectedPly=1)
        server.request("end_game_session", name)
        server.request("evaluate_position", name, expectedPly=1)
    server.close()
    answers = [json.loads(line) for line in server.heard]
    assert len(answers) == 3 * MOST_SESSIONS
    for name in names:
        own = [(answer["type"], answer["success"]) for answer in answers if answer["bgsId"] == name]
        assert own == [("evaluate_response", True), ("game_session_ended", True), ("evaluate_response", False)]


def test_trees_keep_to_their_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("azpy.serving.models.TREES_MB", 4)
    ended = list[str]()

    class Watched(WallGame):
        async def _search(self, *given: Any) -> Any:
            result = await super()._search(*given)
            ended.append(result.stop)
            return result

    server = server_of("uniform:4000000000", Watched)
    assert server.ask("start_game_session", "a", botId="bot", config=CONFIG)["success"]
    assert server.ask("evaluate_position", "a", expectedPly=0)["success"]
    server.close()
    assert ended[0] == "memory"


def test_no_more_is_read_while_too_much_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("azpy.serving.wall_game._MOST_WAITING", 50)
    taken, answered, is_free = list[str](), list[str](), threading.Event()

    class Slow(WallGame):
        def _take(self, line: str) -> None:
            super()._take(line)
            taken.append(line)
            assert len(taken) <= len(answered) + 50
            if len(taken) == 50:
                is_free.set()

        async def _answer(self, *given: Any) -> None:
            assert is_free.wait(PATIENCE)
            answered.append("")
            await super()._answer(*given)

    server = server_of("uniform:1", Slow)
    for _ in range(1_000):
        server.request("evaluate_position", "a", expectedPly=0)
    server.close()
    assert len(server.heard) == len(taken) == 1_000
