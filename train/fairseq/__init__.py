"""Import and export of the file formats of fairseq (a training library), without fairseq itself.

Terms of this package:

- shards: token ids on disk (see `train.tokens.shards`).
- symbol: fairseq's word for a token of its vocabulary file `dict.txt`.
- canonical name: the name of a parameter in fairseq, in the form that is the same for all its versions.
"""
