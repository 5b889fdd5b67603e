"""Building of a corpus: cleaned, deduplicated, decontaminated and split texts from code comments."""
