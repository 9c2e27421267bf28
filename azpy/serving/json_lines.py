"""Analysis queries on stdin, answers on stdout: one JSON object a line."""

from collections.abc import Mapping

from azpy import _core
from azpy.serving.limits import MOST_SEARCHES
from azpy.serving.lines import Conversation
from azpy.serving.models import Player, with_engines
from azpy.serving.queries import Response, Session


class JsonLines:
    """A conversation in analysis queries.

    Args:
        models: players by name; the first one answers for a query that names none.
        talk: lines in and out.
    """

    def __init__(self, models: Mapping[str, Player], talk: Conversation) -> None:
        self._models, self._talk = with_engines(models, MOST_SEARCHES), talk

    def run(self) -> None:
        """Answer queries until the end of the input, then those that wait.

        Ctrl-C ends it at once, and so does an output that nobody reads.
        """
        session = Session(self._models, self._say)
        try:
            for line in self._talk.lines(self._refuse):
                if line:
                    try:
                        session.take(_core.Message(line))
                    except ValueError as error:
                        self._refuse(str(error))
        except KeyboardInterrupt:  # a search may go on for hours
            session.close()
            raise
        finally:
            if self._talk.gone.is_set():
                session.close()
            for model in self._models.values():
                model.engine.close()
            session.wait()

    def _refuse(self, said: str) -> None:
        self._say(Response.refusal(said))

    def _say(self, response: Response) -> None:
        self._talk.say(response.line)
