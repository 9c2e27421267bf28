"""The network, its losses, its export, and the gradient steps. All of it needs torch."""

from azpy.errors import missing_to_train

try:
    import torch  # noqa: F401  each module of this package needs it
except ImportError as error:
    raise missing_to_train("torch") from error
