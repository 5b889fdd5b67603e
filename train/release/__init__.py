"""Release of a model: measured, calibrated, with golden scores and a model card."""
