"""Makes the models: corpus, vocabulary, pretraining. Run from a checkout, never installed."""
