"""Building of a text corpus from code comments, without duplicates and without evaluation texts.

Terms of this package:

- source: an input of the build, such as a folder with code or `hf:NAME` for a data set.
- item: what a source yields: a source file (`Code`), a docstring (raw documentation without its code), or a
  comment that is already extracted.
- comment: the documentation of one function as plain text. Its summary is the first sentence; its description
  is the whole text.
- texts of a comment: the cleaned summary, and the other cleaned paragraphs, as far as they are not rejected.
- batch, part: the sources are read in batches of items; a part is the file with the comments of one batch. A
  corpus is made by merging its parts.
- excluded texts: evaluation texts, which must not be in the corpus.
- held-out texts: the test texts. Texts are "leaky" if they are held out or nearly repeat a held-out text.
- signature: the MinHash signature of a text, (SIGNATURE,) bytes. Its groups of neighbouring bytes are bands;
  only texts that agree in a band are compared.
- original: the earlier text that a text repeats exactly or nearly. An index array `original` has a text's own
  index if it repeats none.
- override: a method may override a method of the supertypes of its class; the comments on both mean the same.
- engine: what runs the parallel steps of a build, on one machine or on a Ray cluster.
- tally: a counter of files, comments or texts by kind, such as "file too large", with examples; functions
  that take one update it.
- root: the folder that the user named as a source.
"""
