"""Release of a trained model: measurements, score scale, golden (expected) scores and model card."""
