"""Does a metric agree with people? Rated data, baselines, correlation."""
