"""Release of a model, with figures, score scale, golden scores and model card."""
