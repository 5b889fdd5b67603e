"""Release of a trained model: measurements, score scale, golden (expected) scores and model card.

The score scale converts a score to a percentile and to an expected human rating.
"""
