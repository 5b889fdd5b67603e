"""Programming languages: how their files are recognized and parsed, and where they hold documentation."""
