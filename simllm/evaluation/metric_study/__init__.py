"""Studies of metrics: how well they agree with people, with a report."""
