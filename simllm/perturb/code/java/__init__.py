"""Safe rewrites of Java code."""
