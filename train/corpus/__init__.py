"""The corpus: clean, deduplicated, decontaminated and split texts from sources of comments."""
