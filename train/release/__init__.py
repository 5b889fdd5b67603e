"""Release of a trained model: measurements, score scale, golden scores and model card.

Terms of this package:

- score scale: converts a score to a percentile among random pairs.
- golden scores: the expected scores of fixed text pairs, which `simllm selftest` compares with new ones.
- figures: measured values by name, as `measure` returns them.
- dev criterion: the mean of a model's figures on dev data, in its provenance; higher is better. (Training
  minimizes the same mean with a minus sign.)
- change: a text with another meaning than a given text.
- triple: a text (the reference), a rewording and a change. A metric is right if it scores the rewording
  higher. The contrast set is a test set of triples. Its form "balanced" has a rewording and a change that
  share equally many words with the reference; in "adversarial", the change shares more.
- deciding words: two words that make the difference in a triple, such as "attaches" and "detaches". A control
  model is trained without them, and shows the accuracy on unseen words.
- meaning item: a main text, rewordings, and changes (see `train.contrastive.meaning_pairs`).
- meaning head: the part of a model that predicts the probability that two texts have the same meaning.
- variant: the training recipe with some settings changed, for an ablation. Its first stage is pretraining or
  distillation before the contrastive training.
"""
