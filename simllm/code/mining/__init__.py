"""Mining of git histories for repayments of self-admitted technical debt (SATD)."""
