"""The settings of a judge, read from a TOML file, and its prompts."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import simllm
from simllm.errors import InputError, OptionError
from simllm.io.reading import whole_text
from simllm.llm.model import Model, content_hash, read_model
from simllm.llm.templates import Templates, find_template
from simllm.metrics.interface import Example, UnavailableError
from simllm.metrics.judge.scale import Scale

READS = ("reference", "source", "both")
PAIRWISE_LABELS = ("first", "second", "tie")
_TEMPLATES = Path(__file__).with_name("templates")
_MOST_SAMPLES = 1000


@dataclass(frozen=True, kw_only=True)
class JudgeSettings(Model):
    """Settings of a judge, from its TOML file: the model with its sampling and limits, and how it is asked.

    Attributes:
        template: A built-in template, or a file of jinja2 beside the TOML file; None for a built-in one that
            fits.
        scale: The worst and the best score.
        labels: Labels from the worst to the best, in place of `scale`.
        samples: The number of replies to each prompt; a score is their mean.
        reads: What the judge reads besides the candidate: "reference", "source" (the code), or "both".
        expectation: Whether a score is the mean of the scale by the probabilities of its steps.
        pairwise: Whether the judge compares the candidates of two systems.
        cache: The file of the replies, beside the TOML file; None for one in the user's cache folder.
        retry_failed: Whether prompts are asked again whose request failed for good.
    """

    template: str | None = None
    scale: tuple[float, ...] = (1.0, 5.0)
    labels: tuple[str, ...] = ()
    samples: int = 1
    reads: str = "reference"
    expectation: bool = False
    pairwise: bool = False
    cache: str | None = None
    retry_failed: bool = False

    def __post_init__(self) -> None:
        """Check all values."""
        super().__post_init__()
        if not self.model:
            raise OptionError("{model}: expected the name of the model, which is part of the signature")
        if self.reads not in READS:
            raise OptionError("{reads} {given}: expected reference, source or both", given=self.reads)
        if not 1 <= self.samples <= _MOST_SAMPLES:
            message = "{samples} {number}: expected a whole number from 1 to {most:,}"
            raise OptionError(message, number=self.samples, most=_MOST_SAMPLES)
        if self.samples > 1 and self.temperature == 0:
            raise OptionError("{samples}: at {temperature} 0, all samples are equal; expected 1 sample")
        if len(self.scale) != 2:
            raise OptionError("{scale}: expected two numbers, such as [1, 5]; {labels} is for texts")
        if self.labels and self.scale != (1.0, 5.0):
            raise OptionError("{scale} and {labels}: expected one of them")
        if self.pairwise and (self.labels or self.expectation or self.scale != (1.0, 5.0)):
            raise OptionError("{pairwise}: goes without {scale}, {labels} and {expectation}")
        if "" in (self.template, self.cache):
            empty = "template" if self.template == "" else "cache"
            raise OptionError(f"{{{empty}}}: expected a name, not an empty text")
        steps = self.steps  # checks itself
        if self.expectation and not steps.steps:
            raise OptionError("{expectation}: expected {labels}, or a {scale} of at most 21 whole numbers")

    @property
    def steps(self) -> Scale:
        """The scale, which checks itself."""
        return Scale(self.scale[0], self.scale[1], self.labels)

    @property
    def reads_source(self) -> bool:
        """Whether the judge reads the code."""
        return self.reads != "reference"

    @property
    def reads_reference(self) -> bool:
        """Whether the judge reads the reference."""
        return self.reads != "source"


class Judge:
    """A judge as it is used: its settings, its template, its signature and the file of its replies.

    Attributes:
        cache: The file of the replies, which need not exist.
    """

    def __init__(self, file: Path) -> None:
        self.file, self.settings = file, read_settings(file)
        name, text = _template(file, self.settings)
        self._templates = Templates({name: text}, self._values(Example("", "", "", ""), "", "").keys())
        self._template_name = name
        self._check_template()
        chosen = self.settings
        content = content_hash(text)
        # `samples` is left out: more samples need only the replies that are missing.
        asked = [chosen.request(""), content, str(chosen.steps), chosen.reads, chosen.expectation]
        own = chosen.cache and file.parent / Path(chosen.cache).expanduser()
        self.cache = own or _cache_folder() / f"{content_hash(asked)[:32]}.jsonl"
        sampling = [f"{key}={value}" for key, value in chosen.parameters().items()]
        parts = [
            "judge",
            f"model:{chosen.model}",
            *([f"api:{chosen.api}"] if chosen.api != "chat" else []),
            f"template:{name}:{content[:12]}",
            f"reads:{chosen.reads}",
            "pairwise" if chosen.pairwise else f"scale:{chosen.steps}",
            f"samples:{chosen.samples}",
            *(["expectation"] if chosen.expectation else []),
            f"sampling:{','.join(sampling) or 'default'}",
            *([f"extra:{content_hash(chosen.extra)[:12]}"] if chosen.extra else []),
        ]
        # A name of a model or file may have signs of the signature, or line ends.
        parts = [" ".join(part.split()) for part in parts]
        self.signature = "|".join([*parts, f"version:{simllm.__version__}"])

    def prompt(self, example: Example, second: str = "") -> str:
        """Render the prompt of an example; of a pair-wise judge, with the second candidate."""
        if self.settings.reads_source and example.source is None:
            raise UnavailableError(f'{self.file} reads the code, but a pair has no text under "source"')
        return self._render(self._values(example, example.candidate, second))

    def _values(self, example: Example, candidate: str, second: str) -> dict[str, str | None]:
        """Return what the template may use."""
        chosen = self.settings
        values: dict[str, str | None] = {"first": candidate, "second": second}
        if not chosen.pairwise:
            steps = chosen.steps
            form = f"Answer: {'|'.join(steps.labels)}" if steps.labels else "Score: N"
            values = {"candidate": candidate, "scale": steps.description, "form": form}
            values |= {"low": f"{steps.low:g}", "high": f"{steps.high:g}"}
        if chosen.reads_reference:
            values["reference"] = example.reference
        if chosen.reads_source:
            values["source"] = example.source
        return {**values, "language": example.language}

    def _render(self, values: Mapping[str, str | None]) -> str:
        return self._templates.render(self._template_name, values)

    def _check_template(self) -> None:
        """Check that the template is right, and that what it gives depends on all texts that are read."""
        chosen = self.settings
        texts = {"first", "second"} if chosen.pairwise else {"candidate"}
        texts |= {"reference"} if chosen.reads_reference else set()
        texts |= {"source"} if chosen.reads_source else set()
        values = {**self._values(Example("", "one", "two", "java"), "three", "four")}
        before = self._render(values)
        for name in sorted(texts):
            if self._render({**values, name: "something else"}) == before:
                message = f"does not use {{{{ {name} }}}}, so that the {name} could not change a score"
                raise InputError(f"{self._template_name}: {message}")


def read_settings(file: Path) -> JudgeSettings:
    """Read the settings of a judge from a TOML file."""
    return read_model(file, JudgeSettings)


def _template(file: Path, chosen: JudgeSettings) -> tuple[str, str]:
    """Return the name and the text of a judge's template."""
    name = chosen.template
    if name is None:
        name = "adequacy-given-code" if chosen.reads_source else "adequacy"
        name = "pairwise" if chosen.pairwise else name
    built_in = {path.stem: path for path in _TEMPLATES.glob("*.j2")}
    try:
        path = find_template(name, file.parent, built_in)
    except InputError as error:
        raise InputError(f"{file}: {error}") from None
    return name if name in built_in else path.name, whole_text(path)


def _cache_folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "simllm" / "judges"
