"""The public data sets: where each comes from, how it is fetched, converted and verified."""
