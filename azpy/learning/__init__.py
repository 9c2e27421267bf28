"""What is learned: the network, its losses, its export, and the gradient steps."""
