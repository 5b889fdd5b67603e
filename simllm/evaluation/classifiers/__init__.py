"""Evaluation of classifiers by the protocol ECSER-LLM, which goes from data checks to significance tests.

`read` loads the predictions of the classifiers, `evaluate` analyses them, and `find_warnings` tells what
makes the figures mean less.
"""

from simllm.evaluation.classifiers.ecser_protocol import ClassifierStudy as ClassifierStudy
from simllm.evaluation.classifiers.ecser_protocol import evaluate as evaluate
from simllm.evaluation.classifiers.prediction_files import Predictions as Predictions
from simllm.evaluation.classifiers.prediction_files import read as read
from simllm.evaluation.classifiers.study_warnings import find_warnings as find_warnings
