"""Metrics by name, and the baselines behind them."""
