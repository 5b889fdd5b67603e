"""Evaluation of classifiers by the protocol ECSER-LLM, which goes from data checks to significance tests.

`read` loads the predictions of the classifiers, `evaluate` analyses them, and `find_warnings` tells what
makes the figures mean less. The modules share these words and arguments:

- `rows` is a table with a row for each prediction, with the columns of `Predictions.rows`.
- An item, named by `data_set` and `item`, may have several rows of one classifier: from several runs, or
  from several folds of a cross-validation. Rows of one item are not independent, so they are averaged first,
  or widen an interval by `repeats`, the mean number of rows of an item.
- A split is "train", "validation" or "test". An original item has an empty `variant`; a variant is a
  rewriting of an original.
- `gold` is the true class and `predicted` the predicted one. An output is unparsed if no class could be read
  from it. A label is invented if it is no item's true class.
- `labels` are the k classes. Of two, the first is the positive class. Class numbers are indices in `labels`.
- The strict value of a metric counts unparsed outputs as wrong; other values leave them out.
- A column of groups, such as "language", divides the items; an empty value belongs to no group.
"""

from simllm.evaluation.classifiers.predictions import Predictions as Predictions
from simllm.evaluation.classifiers.predictions import read as read
from simllm.evaluation.classifiers.protocol import ClassifierStudy as ClassifierStudy
from simllm.evaluation.classifiers.protocol import evaluate as evaluate
from simllm.evaluation.classifiers.warnings import find_warnings as find_warnings
