"""Games with variations, read and written: python-chess and sgfmill agree. Rust tries any text (rust/games/tests)."""

import io
import random
from typing import Any

import chess
import chess.pgn
import pytest
from sgfmill import sgf

import azpy
from azpy.serving.limits import Limits
from talks import answer_to, asker_of

CHESS, GO = azpy.make_game("chess"), azpy.make_game("go(size=5)")
STARTS = [
    CHESS,
    azpy.make_game("chess", chess960=356),
    azpy.parse_state("chess(max_plies=120)", "r3k2r/8/8/3pP3/8/8/8/R3K2R b KQkq - 40 31"),
    GO,
    azpy.parse_state("go(size=5)", "(;SZ[5]AB[aa][bb]AW[cc]PL[W])"),
]
WIDE = Limits(nodes=10_000, depth=1_000, text_bytes=1 << 20)

Node = list[Any]  # before, name, short name


def read(fields: dict[str, Any], start: azpy.State, limits: Limits) -> Any:
    """What the action `read` answers about a start."""
    return answer_to(start, {"id": "1", **fields, "action": "read"}, limits)


def write(fields: dict[str, Any], start: azpy.State, limits: Limits) -> Any:
    """What the action `write` answers about a start."""
    return answer_to(start, {"id": "1", **fields, "action": "write"}, limits)


def random_tree(start: azpy.State, size: int, rng: random.Random) -> list[Node]:
    """Moves of a game with variations."""
    nodes, positions, known = list[Node](), {-1: start}, set[tuple[int, int]]()
    for _ in range(size):
        before = rng.randrange(-1, len(nodes)) if rng.random() < 0.2 else len(nodes) - 1
        state = positions[before].clone()
        if state.is_terminal or (before, action := rng.choice(state.legal_actions())) in known:
            continue
        known.add((before, action))
        nodes.append([before, state.action_name(action), state.short_name(action)])
        state.play(action)
        positions[len(nodes) - 1] = state
    return nodes


def nested(nodes: list[Any], index: int = -1) -> list[Any]:
    """What stands behind a move, in whatever order the list has it."""
    behind = [at for at, (before, *_) in enumerate(nodes) if before == index]
    return [(tuple(nodes[at][1:]), nested(nodes, at)) for at in behind]


def names(tree: list[Any]) -> list[Any]:
    return [(name[0], names(inner)) for name, inner in tree]


def tree_of_chess(node: chess.pgn.GameNode) -> list[Any]:
    return [(child.move.uci(), tree_of_chess(child)) for child in node.variations]


def chess_node(node: chess.pgn.GameNode, tree: list[Any], rng: random.Random) -> None:
    for name, inner in tree:
        comment = rng.choice(["", "", "aside (1. e4) ;", "[%clk 0:01:00]"])
        child = node.add_variation(chess.Move.from_uci(name), comment=comment, nags=rng.sample(range(1, 9), 1))
        chess_node(child, inner, rng)


@pytest.mark.parametrize("start", STARTS[:3], ids=["chess", "chess960", "a FEN"])
def test_variations_of_pgn_are_those_of_python_chess(start: azpy.State) -> None:
    usual = azpy.make_game(start.game)
    for seed in range(20):
        rng = random.Random(seed)
        tree = names(nested(random_tree(start, 60, rng)))
        written = write({"nodes": random_tree(start, 60, random.Random(seed))}, start, WIDE)["text"]
        other = chess.pgn.read_game(io.StringIO(written))
        assert other is not None
        assert not other.errors
        assert tree_of_chess(other) == tree, written
        board = chess.Board(start.to_text(), chess960="chess960" in start.game)
        game = chess.pgn.Game()
        game.setup(board)
        chess_node(game, tree, rng)
        found = read({"text": str(game)}, usual, WIDE)
        assert names(nested(found["nodes"])) == tree, str(game)
        assert azpy.parse_state(usual, found["position"] or "").key() == start.key()
        assert found["leftOut"] == []


def tree_of_go(node: sgf.Tree_node, size: int) -> list[Any]:
    found = []
    for child in node:
        _, point = child.get_move()
        name = "pass" if point is None else f"{'ABCDEFGHJKLMNOPQRST'[point[1]]}{point[0] + 1}"
        found.append((name, tree_of_go(child, size)))
    return found


def go_node(node: sgf.Tree_node, tree: list[Any], colour: str) -> None:
    for name, inner in tree:
        child = node.new_child()
        point = None if name == "pass" else (int(name[1:]) - 1, "ABCDEFGHJKLMNOPQRST".index(name[0]))
        child.set_move(colour, point)
        child.set("C", "some ] text \\ and (;more)")
        go_node(child, inner, "w" if colour == "b" else "b")


@pytest.mark.parametrize("start", STARTS[3:], ids=["go", "stones"])
def test_variations_of_sgf_are_those_of_sgfmill(start: azpy.State) -> None:
    for seed in range(20):
        nodes = random_tree(start, 60, random.Random(seed))
        tree = names(nested(nodes))
        written = write({"nodes": nodes, "players": ["Ann", None]}, start, WIDE)["text"]
        other = sgf.Sgf_game.from_string(written)
        assert (tree_of_go(other.get_root(), 5), other.get_player_name("b")) == (tree, "Ann")
        game = sgf.Sgf_game.from_string(start.to_text())
        go_node(game.get_root(), tree, "bw"[start.turn])
        found = read({"text": game.serialise().decode()}, GO, WIDE)
        assert names(nested(found["nodes"])) == tree
        assert found["leftOut"] == []


FEW = Limits(nodes=4, depth=1, text_bytes=60)
TREE = [[-1, "e2e4", "e4"], [-1, "d2d4"], [1, "d7d5"]]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"action": "read"}, "text is missing"),
        ({"action": "read", "text": " \n"}, "text: it is empty"),
        ({"action": "read", "text": "e4 " * 21}, "text: expected at most 60 bytes, got 63"),
        ({"action": "read", "text": "e4\nKe3"}, "text: line 2: action 2 is"),
        (
            {"action": "read", "text": "e4\n(Nf3) (c4) (d4) (b4)"},
            "text: line 2: the game with its variations has more than 4 moves",
        ),
        ({"action": "read", "text": "e4\n(d4 d5 (e5))"}, "text: line 2: variations are nested more than 1"),
        ({"action": "write"}, "nodes is missing"),
        ({"action": "write", "nodes": [[-1, "e2e4"]] * 5}, "nodes: expected at most 4, got 5"),
        ({"action": "write", "nodes": [[-1]]}, "nodes[0]: expected the index of the node before it"),
        ({"action": "write", "nodes": [[0, "e2e4"]]}, "nodes[0]: expected a whole number from -1 to -1, got 0"),
        ({"action": "write", "nodes": [[-1, "e4"]]}, 'move 0 is "e4", which is not among the legal ones'),
        ({"action": "write", "nodes": [*TREE[1:2], [-1, "e2e4"], [1, "e7e5"]]}, None),
        ({"action": "write", "nodes": [*TREE, [1, "c7c5"]]}, "variations are nested more than 1 deep"),
        ({"action": "write", "nodes": TREE, "players": ["a"]}, "players: expected a list of two texts, got 1"),
        ({"action": "write", "nodes": TREE, "result": "B+R"}, "tag Result: expected one of 1-0, 0-1, 1/2-1/2, *"),
        ({"action": "write", "nodes": TREE, "position": "e4"}, "a PGN needs the moves that led to this position"),
    ],
)
def test_errors_name_the_place(fields: dict[str, Any], said: str | None) -> None:
    with asker_of(CHESS, **vars(FEW)) as session:
        session.ask(**{"id": "1", **fields})
    (answer,) = session.said
    assert set(answer) == {"id", "error"} if said else {"id", "action", "text"}
    assert said is None or said in answer["error"]


@pytest.mark.parametrize(
    ("start", "text", "players", "result"),
    [
        (CHESS, '[White "{name}"]\n[Result "White wins"]\n\n1. e4 1-0', True, "1-0"),
        (CHESS, '[White "{name}"]\n[Result "White wins"]\n\n1. e4', True, None),
        (CHESS, '[White ""]\n[Result "?"]\n\n1. e4 *', False, None),
        (GO, "(;SZ[5]PB[{name}]RE[White, by far];B[cc])", True, "White, by far"),
    ],
)
def test_tags_read_from_a_text_can_be_written(start: azpy.State, text: str, players: bool, result: str | None) -> None:
    name = "a" * 300
    found = read({"text": text.format(name=name)}, start, WIDE)
    assert (found["players"], found["result"]) == ([name, None] if players else None, result)
    again = read({"text": write(found, start, WIDE)["text"]}, start, WIDE)
    assert (again["players"], again["result"]) == (found["players"], result)
