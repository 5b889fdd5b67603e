"""Distillation: a small model, the student, learns the embeddings of larger sentence encoders, its teachers.

Terms of this package:

- update: one optimizer step, counted from 0. All that is random in an update depends only on the seed and the
  number of the update, so that a resumed run repeats it.
- group: texts that are used in the same update, so that the student learns to compare them: a text, a pair of
  texts, or a text with its variants.
- variants: a rewording of a text, and a text with a changed meaning, both made by rule.
- targets: the embeddings that the student should learn, computed from those of all teachers.
- imitation: learning targets in another training than distillation; contrastive training does so, too, if its
  configuration has the key `imitation`.
- held-out words: word pairs such as `open` and `close`, which decide the contrast set (a test set of triples
  of texts). Models are tested on them, not trained on them.
"""
