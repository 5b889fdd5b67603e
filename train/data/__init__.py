"""The public data sets: their origins, and fetching, converting and verifying them."""
