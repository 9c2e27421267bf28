"""Analysis queries on stdin, answers on stdout: one JSON object a line."""

from collections.abc import Mapping

from azpy import _core
from azpy.serving.limits import MOST_SEARCHES
from azpy.serving.lines import Conversation
from azpy.serving.models import Served, with_engines
from azpy.serving.queries import Analyst, Reply


class JsonLines:
    """A conversation in analysis queries.

    Args:
        models: players by name; the first one answers for a query that names none.
        talk: lines in and out.
    """

    def __init__(self, models: Mapping[str, Served], talk: Conversation) -> None:
        self._models, self._talk = with_engines(models, MOST_SEARCHES), talk

    def run(self) -> None:
        """Answers queries until the end of the input, then those that wait.

        Ctrl-C ends it at once, and so does an output that nobody reads.
        """
        analyst = Analyst(self._models, self._say)
        try:
            for line in self._talk.lines(self._refuse):
                if line:
                    try:
                        analyst.take(_core.Message(line))
                    except ValueError as error:
                        self._refuse(str(error))
        except KeyboardInterrupt:  # a search may go on for hours
            analyst.close()
            raise
        finally:
            if self._talk.gone.is_set():
                analyst.close()
            for model in self._models.values():
                model.engine.close()
            analyst.wait()

    def _refuse(self, said: str) -> None:
        self._say(Reply.refusal(said))

    def _say(self, reply: Reply) -> None:
        self._talk.say(reply.line)
