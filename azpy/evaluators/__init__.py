"""Evaluators: their common interface, and those of ONNX Runtime and torch."""
