"""Safe reading and writing of files and folders; strict loading of JSON; tables and HTML pages."""
