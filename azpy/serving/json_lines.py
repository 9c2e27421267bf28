"""Analysis queries as JSON, one object a line."""

from collections.abc import Mapping

from azpy.serving.lines import Conversation
from azpy.serving.models import Served

__all__ = ["JsonLines"]


class JsonLines:
    """A conversation in analysis queries."""

    def __init__(self, models: Mapping[str, Served], talk: Conversation) -> None:
        self._models, self._talk = models, talk

    def run(self) -> None:
        """Answers queries until the end of the input."""
        raise NotImplementedError
