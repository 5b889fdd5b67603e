"""The trainer and what every stage of training shares."""
