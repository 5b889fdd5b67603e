"""Release of a trained model: measurements, score calibration, golden scores and model card."""
