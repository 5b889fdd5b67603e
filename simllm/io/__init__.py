"""Files and folders, strict loading of JSON, tables, LaTeX."""
