"""Analysis of source code: documented functions, syntax trees, git histories and code in model replies."""
