"""Scoring of text pairs by similarity and by probability of the same meaning.

Terms:

- A *pair* is a tuple that begins with a candidate and its reference; more items may follow, such as an id.
- A *chunk* is a list of pairs that are scored together, so that not all pairs are in memory at once.
- *Cleaning* removes comment marks and converts letters to lower-case ASCII (`simllm.text_cleaning`).
- A *window* is a tuple of token ids that the encoder reads at once, from <s> to </s>. Most texts have one
  window; a long text may be split into several, or cut.
- The encoder gives (B, L, D) *hidden states*: B windows of L tokens, hidden size D. A (B, L) *mask* is true
  for tokens that are not padding. *Pooling* turns the states of a window into one *embedding* of length D.
- A *scorer* takes 2n tokenized texts: first the n candidates, then their n references.
- The *meaning head* is a network that compares the tokens of two texts. It estimates the probability that
  both have the same meaning, which is called `same`; `same` is None where there is no head.
- The *calibration* maps scores to percentiles among random pairs.
- `no_scores` is a metric's `Scores` for an empty list of pairs. Copies of it get the scores of pairs, and
  keep its signature and calibration.
"""
