"""Find pairs of comments in a corpus that have the same meaning in almost the same words.

    python -m train.contrastive.near_duplicate_pairs runs/mini/corpus/train.txt runs/near-duplicates.jsonl

The two texts of a pair have the same content words in the same order, after some normalization: articles
and similar words are removed, `returns` becomes `return`, and `the name of the user` becomes `user name`.
Texts are not paired if a word is replaced by its opposite, if a number or a negation differs, or if
subject and object are swapped, because then the content words or their order differ.

The output is JSON lines. Each has the two texts, `a` and `b`, and in `group` the content words that both
texts have. All pairs with the same content words have the same `group`.
"""

from __future__ import annotations

import json
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path

from simllm.io import output_file, reading
from simllm.perturb.summaries import lexicon
from simllm.perturb.summaries.inflection import BEFORE_VERBS, DETERMINERS, FUNCTION_WORDS, THIRD_PERSON
from simllm.perturb.summaries.lexicon import Lexicon
from simllm.text_cleaning import clean
from train.corpus.deduplicate import identity
from train.runtime.command import make_parser, run_command

_LIGHT_WORDS = frozenset("the a an this that these those its their given specified provided".split())
# Operators are content as well: `a < b` is not `a > b`.
_CONTENT = re.compile(r"[a-z0-9<>=!+*/%&|^~-]")
# Texts with fewer content words, such as "see above", mean too little.
_FEWEST = 3


def main() -> int:
    """Run the command line, and return the exit status."""
    parser = make_parser("train.contrastive.near_duplicate_pairs", __doc__)
    parser.add_argument("corpus", type=Path, help="texts, one per line")
    parser.add_argument("out", type=Path, help="JSON lines to write")
    return run_command(parser, _write, overwrite=True)


def _write(corpus: Path, out: Path, overwrite: bool) -> None:
    output_file.check_output(out, overwrite, [corpus])
    texts = (clean(line) for _, line in reading.read_lines(corpus))
    rows = list(find_pairs(texts, lexicon.load()))
    output_file.write(out, "".join(json.dumps(row) + "\n" for row in rows))
    print(f"{len(rows):,} pairs in {out}", file=sys.stderr)


def find_pairs(texts: Iterable[str], lexicon: Lexicon) -> Iterator[dict[str, str]]:
    """Pair cleaned texts that have the same three or more content words in the same order.

    If n texts have the same content words, n - 1 pairs are yielded: first and second, second and third, and
    so on. `group` is the content words, joined by spaces.
    """
    groups: dict[str, list[str]] = defaultdict(list)
    # `identity` ignores punctuation, so that texts that differ only there are no pair.
    for text in {identity(text): text for text in texts}.values():
        if len(words := extract_content_words(text, lexicon)) >= _FEWEST:
            groups[" ".join(words)].append(text)
    for group, same in groups.items():
        yield from ({"a": a, "b": b, "group": group} for a, b in pairwise(same))


def extract_content_words(text: str, lexicon: Lexicon) -> list[str]:
    """Return the content words of a cleaned text, normalized so that near-duplicates give equal lists.

    Articles are left out, verbs in the third person become base forms, `name of the user` becomes `user
    name`.
    """
    words = text.split()
    content = [
        _base_form(before, word, after, lexicon)
        for before, word, after in zip(["", *words], words, [*words[1:], ""], strict=False)
        if _CONTENT.search(word) and not (word in _LIGHT_WORDS and _is_content_word(after))
    ]
    # From the right, so that the earlier places stay valid.
    for place in reversed([place for place, word in enumerate(content) if word == "of" and place]):
        *start, head = content[:place]
        owner, rest = content[place + 1 : place + 2], content[place + 2 :]
        verb_only = len(start) == 1 and start[0] in lexicon.verb_forms
        begins = not start or start[-1] in FUNCTION_WORDS or verb_only
        ends = not rest or rest[0] in FUNCTION_WORDS
        # Only single words are swapped: `the first name of a user` is not `the name of a first user`.
        # "number" stays in its place: `the number of users` is not `the user number`.
        if (
            begins
            and ends
            and _is_content_word(head)
            and owner
            and _is_content_word(owner[0])
            and head != "number"
        ):
            content = [*start, *owner, head, *rest]
    return content


def _is_content_word(word: str) -> bool:
    return word[:1].isalnum() and word not in FUNCTION_WORDS


def _base_form(before: str, word: str, after: str, lexicon: Lexicon) -> str:
    """Return the base form of a verb in the third person, and any other word unchanged."""
    if before and before not in BEFORE_VERBS:
        return word
    forms = lexicon.verb_forms.get(word)
    if forms and word == forms[THIRD_PERSON]:
        # Before `of`, such a word is a noun.
        return forms[0] if after != "of" else word
    # A word that the list lacks counts as a verb only at the start and before a determiner: `caches the
    # user`.
    is_verb = not before and after in DETERMINERS and word.endswith("s") and not forms
    return word[:-1] if is_verb else word


if __name__ == "__main__":
    sys.exit(main())
