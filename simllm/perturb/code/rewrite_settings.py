"""The settings with which many sources are rewritten."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from simllm.perturb.code.default_rules import DEFAULT_RULES, check_rules
from simllm.perturb.code.new_names import Namer, synonyms
from simllm.perturb.code.rewriting import Rewrite, rewrite


@dataclass(frozen=True)
class RewritePlan:
    """The settings with which many sources are rewritten; bad rules or a bad share raise `InputError`.

    Attributes:
        rules: The names of the rules, in the order in which they are applied.
        share: The probability, from 0 to 1, with which a rule rewrites each possible place.
        seed: The seed for choosing the places.
        is_file: Whether each source must be a whole file. A whole file keeps each name that other files may
            use.
    """

    rules: Sequence[str] = DEFAULT_RULES
    namer: Namer = synonyms
    share: float = 1.0
    seed: int = 0
    is_file: bool = False

    def __post_init__(self) -> None:
        check_rules(self.rules, self.share)

    def rewrite(self, source: str, language: str) -> Rewrite:
        """Rewrite a source; rules that do not exist for the language are ignored."""
        return rewrite(
            source, language, self.rules, self.namer, share=self.share, seed=self.seed, is_file=self.is_file
        )

    def with_names(self, names: Mapping[str, str]) -> RewritePlan:
        """Return this plan, but with the given new names for some old names."""
        if not names:
            return self
        return replace(
            self, namer=lambda name, kind: [names[name]] if name in names else self.namer(name, kind)
        )

    def arms(self) -> Iterator[tuple[str | None, RewritePlan]]:
        """Yield (None, this plan), and then, for each rule, its name and a plan with this rule alone.

        Each plan is one arm of an experiment that shows the effect of each single rule.
        """
        yield None, self
        yield from ((rule, replace(self, rules=(rule,))) for rule in self.rules)
