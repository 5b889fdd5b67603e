"""Building of a text corpus from code comments, without duplicates and without evaluation texts."""
