"""Conversations of the tests in UCI and UGI."""

from collections.abc import Mapping

from azpy.serving.models import Served, open_player
from azpy.serving.uci import Uci
from talks import Talk


def talk(player: str, game: str, word: str) -> Talk:
    """A conversation with one player in this process."""
    return talk_to({"player": open_player(player, game, 100)}, word)


def talk_to(models: Mapping[str, Served], word: str = "uci") -> Talk:
    """A conversation with several players in this process."""
    return Talk(lambda conversation: Uci(models, conversation, word).run())


def answers(lines: list[str], *said: str) -> list[str]:
    """Of what was heard, the lines that begin so."""
    return [line for line in lines if line.startswith(said)]


def all_heard(player: str, game: str, word: str, *said: str) -> list[str]:
    """All that is heard in a conversation which ends after the last line."""
    engine = talk(player, game, word)
    engine.say(*said)
    engine.close()
    return engine.heard
