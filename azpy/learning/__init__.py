"""What is learned: the network, its losses, its export, and the gradient steps. It needs torch, and says so."""

from azpy.errors import missing_to_train

try:
    import torch  # noqa: F401  each module of this package needs it
except ImportError as error:
    raise missing_to_train("torch") from error
