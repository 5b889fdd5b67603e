"""From sources of comments to clean, deduplicated, decontaminated, split texts."""
