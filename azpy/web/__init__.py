"""HTTP and WebSocket: the queries of `azpy.serving` for programs and browsers on a network."""
