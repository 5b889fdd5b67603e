"""Safe reading and writing of files and folders, strict loading of JSON, and writing of tables and pages."""
