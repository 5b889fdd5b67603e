"""Pretraining: permuted language modelling as in MPNet, from a corpus to a model folder.

Terms of this package (see also `permutation`):

- update: one optimizer step, counted from 0. It consists of batches, which are divided among the processes.
- permuted: in random order. The model predicts the last tokens of this order, one after the other.
- original, context: a token that is predicted, or is not.
- slot: a placeholder at the position of an original.
- row: a token or a slot. A text has two streams of rows: the content stream has its tokens and slots, the
  query stream makes the predictions.
- turn: the number of an original in the order of prediction, from 1.
- shards: token ids on disk (see `train.tokens.shards`).
"""
