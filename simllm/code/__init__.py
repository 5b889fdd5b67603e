"""Source code: languages, and where each keeps its functions and their documentation."""
