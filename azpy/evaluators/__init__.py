"""Who answers a leaf: what every evaluator offers, and the evaluators of ONNX Runtime and torch."""
