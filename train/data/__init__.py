"""The public data sets: their origins, and how they are fetched, converted and verified."""
