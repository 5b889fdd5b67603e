"""Code that all training stages share: training loop, configuration, log, saved states, signals."""
