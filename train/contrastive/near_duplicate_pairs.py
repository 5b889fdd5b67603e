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

import argparse
import json
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path

from simllm.io import output_file, read_lines
from simllm.perturb.summaries import lexicon
from simllm.perturb.summaries.function_words import BEFORE_VERBS, DETERMINERS, FUNCTION_WORDS
from simllm.perturb.summaries.inflection import THIRD_PERSON
from simllm.perturb.summaries.lexicon import Lexicon
from simllm.text_cleaning import clean
from train.corpus.text_hash import identity
from train.runtime.overwrite_option import add_overwrite_option, check_output
from train.runtime.tool_exit_status import run_tool

_LIGHT_WORDS = frozenset("the a an this that these those its their given specified provided".split())
_CONTENT = re.compile(r"[a-z0-9<>=!+*/%&|^~-]")  # operators as well: `a < b` is not `a > b`
_FEWEST = 3  # content words: texts with fewer, such as "see above", mean too little


def main() -> int:
    """Parse the command line, write pairs of near-duplicate texts, and return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m train.contrastive.near_duplicate_pairs",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("corpus", type=Path, help="texts, one per line")
    parser.add_argument("out", type=Path, help="JSON lines to write")
    add_overwrite_option(parser)
    options = parser.parse_args()
    return run_tool(lambda: _write(**vars(options)))


def _write(corpus: Path, out: Path, overwrite: bool) -> None:
    """Find pairs of texts with the same content words in the same order, and write them to a file.

    Args:
        corpus: A file with one text per line.
        out: The JSON-lines file to write.
        overwrite: Whether `out` may be replaced.
    """
    check_output(out, overwrite, [corpus])
    texts = (clean(line) for _, line in read_lines.lines(corpus))
    rows = list(find_pairs(texts, lexicon.load()))
    output_file.write(out, "".join(json.dumps(row) + "\n" for row in rows))
    print(f"{len(rows):,} pairs in {out}", file=sys.stderr)


def find_pairs(texts: Iterable[str], lexicon: Lexicon) -> Iterator[dict[str, str]]:
    """Pair texts that have the same content words in the same order.

    Texts with fewer than three content words are left out. Texts that differ only in punctuation count as one
    text. If n texts have the same content words, the result is n - 1 pairs: the first text and the second,
    the second and the third, and so on.

    Args:
        texts: Texts, as `simllm.text_cleaning.clean` returns them.
        lexicon: The word lists. Only the list of verb forms is used. From this list, the function knows that
            "adds" is a form of "add", so that both count as the same word.

    Yields:
        For each pair, a dictionary: the texts `a` and `b`, and in `group` the content words that both texts
        have, joined by spaces.
    """
    groups: dict[str, list[str]] = defaultdict(list)
    for text in {identity(text): text for text in texts}.values():  # ignore differences in punctuation
        if len(words := extract_content_words(text, lexicon)) >= _FEWEST:
            groups[" ".join(words)].append(text)
    for group, same in groups.items():
        yield from ({"a": a, "b": b, "group": group} for a, b in pairwise(same))


def extract_content_words(text: str, lexicon: Lexicon) -> list[str]:
    """Return the content words of a text, normalized so that texts in almost the same words give equal lists.

    Articles and similar words are left out. Verbs in the third person become base forms. Phrases like
    `name of the user` become `user name`.

    Args:
        text: The text, as `simllm.text_cleaning.clean` returns it.
        lexicon: The word lists. Only the list of verb forms is used. From this list, the function knows that
            "adds" is a form of "add".
    """
    words = text.split()
    content = [
        _base_form(before, word, after, lexicon)
        for before, word, after in zip(["", *words], words, [*words[1:], ""], strict=False)
        if _CONTENT.search(word) and not (word in _LIGHT_WORDS and _is_content_word(after))
    ]
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
    """Return the base form of a verb in the third person: "return" for "returns".

    A word that is not such a verb is returned unchanged. The neighbouring words help to recognize verbs.

    Args:
        before: The previous word in the text, or "".
        word: The word.
        after: The next word in the text, or "".
        lexicon: The word lists. Only the list of verb forms is used, which says that "adds" is a form of
            "add".
    """
    if before and before not in BEFORE_VERBS:
        return word
    forms = lexicon.verb_forms.get(word)
    if forms and word == forms[THIRD_PERSON]:
        return forms[0] if after != "of" else word  # before `of`, a noun
    is_verb = not before and after in DETERMINERS and word.endswith("s") and not forms
    return word[:-1] if is_verb else word


if __name__ == "__main__":
    sys.exit(main())
