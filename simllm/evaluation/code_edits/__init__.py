"""Studies of systems that edit code, with a report."""
