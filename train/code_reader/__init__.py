"""Training of the code reader, which scores a summary against the code that it describes.

Terms of this package:

- pair: a function with its summary, the first sentence of its documentation.
- sibling: a function of the same source file with another name; its summary is a hard negative.
- variant: a rewrite of the code that behaves the same; its score should be the same.
- changed summary: a summary whose meaning a rule has changed in one word or phrase.
- fits: whether a summary describes a piece of code.
"""
