"""Safe reading and writing of files and folders, strict JSON, tables, and LaTeX."""
