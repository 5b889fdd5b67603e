"""The negative log-likelihood of code under a local causal language model, and what it explains."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from simllm.array_types import Floats
from simllm.errors import InputError, OptionError
from simllm.evaluation.metamorphic.results import ItemOutcome
from simllm.io import tables
from simllm.stats.significance import rank_correlation

_LONGEST = 2048  # longest input in tokens, if the model's configuration does not give it


def mean_nll(texts: Sequence[str], folder: Path) -> tuple[list[float | None], int]:
    """Return the NLL of each text, None for fewer than two tokens; and how many texts were cut off.

    The NLL is usually lower for a text that the model has read in training. `folder` is a causal language
    model as saved by the package transformers; none of its code is run, and weights must be safetensors.
    """
    try:
        import torch
        from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer
    except ImportError:
        raise OptionError("{nll_model} needs the package transformers") from None
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder; expected a causal language model")
    # The folder is not trusted: no code of it, no pickled weights, and no network.
    own = {"local_files_only": True, "trust_remote_code": False}
    load: Any = AutoModelForCausalLM.from_pretrained
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, **own)
        _check_size(folder, AutoConfig.from_pretrained(folder, **own))
        own |= {"use_safetensors": True, "output_loading_info": True}
        with _quiet():
            model, loaded = load(folder, **own)
        if loaded["missing_keys"] or loaded["mismatched_keys"]:
            raise ValueError("weights are missing, or have other shapes")
        model.eval()
    except Exception as error:  # whatever a damaged or hostile folder makes transformers raise
        raise InputError(f"{folder}: no causal language model ({_first_line(error)})") from None
    # A text that is too long for the model loses its end.
    longest = getattr(model.config, "max_position_embeddings", None)
    if not isinstance(longest, int) or longest < 2:
        longest = _LONGEST
    found: list[float | None] = []
    cut = 0
    with torch.inference_mode():
        for text in texts:
            try:
                whole = tokenizer(text)["input_ids"]
                ids = torch.tensor([whole[:longest]], dtype=torch.long)
                logits = model(input_ids=ids).logits[0, :-1] if ids.shape[1] > 1 else None
            except Exception as error:
                raise InputError(f"{folder}: the model cannot read a text ({_first_line(error)})") from None
            cut += len(whole) > longest
            if logits is None:
                found.append(None)
                continue
            # The first token has no context, and no likelihood.
            found.append(float(torch.nn.functional.cross_entropy(logits.float(), ids[0, 1:])))
            if not math.isfinite(found[-1] or 0):
                raise InputError(f"{folder}: the likelihood of a text is not finite")
    return found, cut


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep transformers from printing tables and progress bars while it loads weights."""
    from transformers.utils import logging

    before = logging.get_verbosity()
    logging.set_verbosity(50)  # critical
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(before)
        logging.enable_progress_bar()


def _check_size(folder: Path, config: Any) -> None:
    """Raise ValueError, before memory is taken, if a configuration needs more weights than are stored."""
    import torch
    from safetensors import safe_open
    from transformers import AutoModelForCausalLM

    tensors = elements = 0
    for file in folder.glob("*.safetensors"):
        with safe_open(file, "pt") as weights:
            for key in weights.keys():  # noqa: SIM118
                tensors += 1
                elements += math.prod(weights.get_slice(key).get_shape())
    if not tensors:
        raise ValueError("no weights in the format safetensors")
    if getattr(config, "num_hidden_layers", 0) > tensors:
        raise ValueError("there are more layers than weights")
    # Parameters on the device "meta" have shapes, but take no memory.
    with torch.device("meta"):
        network = AutoModelForCausalLM.from_config(config, trust_remote_code=False)
    needed = sum(parameter.numel() for parameter in network.parameters())
    if needed > 2 * elements:  # a weight that is used twice is stored once
        raise ValueError(f"needs {needed:,} numbers, but {elements:,} are stored")


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), "") or type(error).__name__


@dataclass(frozen=True)
class RankCorrelation:
    """Spearman's correlation over n items; `rho` and `p` are None if it is not defined."""

    n: int
    rho: float | None
    p: float | None


@dataclass(frozen=True)
class Likelihood:
    """Correlations between the NLL and the difference of items.

    Attributes:
        median: The median NLL of the items.
        all: The correlation over all items.
        below_median: The correlation that the thesis reports, over the items whose NLL is below the median.
            Language models may have read the code of these items in training.
        above_median: The correlation over the items whose NLL is above the median.
        cumulative: For each item in the order of the NLL: its NLL, and the mean difference over the items up
            to it.
        groups: For each group of items, such as a project: number of items, mean NLL and mean difference.
        by_group: The correlation over the groups, of mean NLL and mean difference.
    """

    median: float
    all: RankCorrelation
    below_median: RankCorrelation
    above_median: RankCorrelation
    cumulative: list[tuple[float, float]]
    groups: dict[str, tuple[int, float, float]]
    by_group: RankCorrelation


def correlate_with_likelihood(outcomes: Sequence[ItemOutcome]) -> Likelihood | None:
    """Correlate the NLL with the difference, over the items with an NLL; None if there are none."""
    known = [(one.nll, one.difference, one.group) for one in outcomes if one.nll is not None]
    if not known:
        return None
    nll, difference = np.array([pair[:2] for pair in known]).T
    # Items with equal NLL in their own order.
    order = np.argsort(nll, kind="stable")
    means = np.cumsum(difference[order]) / np.arange(1, len(nll) + 1)
    names = np.array([group for _, _, group in known])
    chosen = {name: names == name for name in dict.fromkeys(names.tolist()) if name}
    groups = {
        name: (int(own.sum()), float(nll[own].mean()), float(difference[own].mean()))
        for name, own in chosen.items()
    }
    median = float(np.median(nll))
    below, above = nll < median, nll > median
    return Likelihood(
        median,
        _correlate(nll, difference),
        _correlate(nll[below], difference[below]),
        _correlate(nll[above], difference[above]),
        list(zip(nll[order].tolist(), means.tolist(), strict=True)),
        groups,
        _correlate(*np.array([own[1:] for own in groups.values()]).reshape(-1, 2).T),
    )


def _correlate(a: Floats, b: Floats) -> RankCorrelation:
    """Compute Spearman's correlation of two (n,) arrays."""
    found = rank_correlation(a, b)
    return RankCorrelation(len(a), tables.finite(found.statistic), tables.finite(found.p))
