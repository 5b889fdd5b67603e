"""Contrastive training: the model learns similar embeddings for texts with the same meaning.

Terms of this package:

- update: one optimizer step, counted from 0. All that is random in an update depends only on the seed and the
  number of the update, so that a resumed run repeats it.
- positive pair: two texts with the same meaning. Its `group` names the meaning: all texts of the pairs of one
  group have the same meaning.
- hard negative: a text with words like those of a positive pair, but another meaning.
- meaning item: a main text, rewordings of it, and texts with other meanings (see `meaning_pairs`).
- meaning head: a small network on top of the encoder, which predicts the probability that two texts have the
  same meaning. Its pairs have a label: 1 for the same meaning, 0 for different meanings.
- excluded texts: evaluation texts, which must not be trained on.
- held-out words: word pairs such as `open` and `close`, which decide the contrast set (a test set of triples:
  a text, a rewording, and a text with another meaning). Models are tested on them, not trained on them.
- lexical teacher: text similarity by shared tokens, which the encoder learns to imitate.
- anchor: a frozen copy of the initial encoder.
- imitation: learning the embeddings of larger encoders (see `train.distill`).
"""
