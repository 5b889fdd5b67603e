"""Studies of metrics, with a report: how well the scores of metrics agree with human ratings."""
