"""Search for documented functions in the source code of several programming languages."""
