"""The settings with which many sources are rewritten, such as the rules and the random seed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from simllm.perturb.code.default_rules import DEFAULT_RULES, check_rules
from simllm.perturb.code.new_names import Namer, synonyms
from simllm.perturb.code.rewriting import Rewrite, rewrite


@dataclass(frozen=True)
class RewritePlan:
    """The settings with which many sources are rewritten.

    Attributes:
        rules: The names of the rules to apply, in this order.
        namer: The function that proposes new names.
        share: The probability, from 0 to 1, of rewriting a place that a rule can rewrite.
        seed: The seed for choosing the places at random.
        is_file: True: each source is a whole file. False: a source may also be a single function or
            constructor. A single function may get a new name. A whole file keeps each name that other files
            may use.

    Raises:
        InputError: There is no rule, a rule is unknown, or the share is not between 0 and 1.
    """

    rules: Sequence[str] = DEFAULT_RULES
    namer: Namer = synonyms
    share: float = 1.0
    seed: int = 0
    is_file: bool = False

    def __post_init__(self) -> None:
        check_rules(self.rules, self.share)

    def rewrite(self, source: str, language: str) -> Rewrite:
        """Rewrite a source with the settings of this plan.

        Rules that do not exist for the language are ignored. Python, for example, has no braces to add.

        Args:
            source: The code.
            language: The language of the code: "java" or "python".
        """
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
        """Yield this plan and, for each of its rules, a plan that applies only this rule.

        Each plan is one arm of an experiment that compares the rewritten code of all plans. This shows the
        effect of each single rule.

        Yields:
            Pairs of a name and a plan. The first pair is (None, this plan). In the other pairs, the name is
            the name of the rule.
        """
        yield None, self
        yield from ((rule, replace(self, rules=(rule,))) for rule in self.rules)
