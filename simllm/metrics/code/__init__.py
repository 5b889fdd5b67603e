"""Metrics for generated code and code edits, such as CodeBLEU, LEMOD (F1 of edited lines) and RPS."""
