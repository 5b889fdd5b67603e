"""Source code: programming languages, and the search for documented functions."""
