"""The tokenizer, which cleans texts and splits them into tokens.

The rules come from a file, `tokenizer.json`, which may be from elsewhere. They are checked before the library
`tokenizers` sees them: some regular expressions take hours, some rules lengthen a text without bound.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer as Backend

from simllm.errors import InputError
from simllm.io.reading import read_json
from simllm.text_cleaning import LONGEST, encodable, normalizer

# The special tokens have the ids 0 to 4 in every vocabulary.
SPECIAL_TOKENS = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")
PAD_ID, UNK_ID, MASK_ID = 1, 3, 4

# Characters in one call of the backend, which cannot be interrupted and needs 30 bytes per character.
_CHUNK = 1_000_000

_NORMALIZERS = {
    *("Sequence", "Replace", "Prepend", "NFC", "NFD", "NFKC", "NFKD", "Nmt", "StripAccents", "Strip"),
    *("Lowercase", "BertNormalizer"),
}
_MOST_RULES = 100
_GROWTH = 16  # how many times longer the rules of others may make a text
_LONGEST_TOKEN = 1000  # characters; the work for a word grows with its length times that of the tokens
# A text with all characters that cleaned texts have, and some that they do not have.
_PROBE = " ".join(map(chr, range(0x20, 0x7F))) + " caf\u00e9 \u4e2d\U0001f600 \ufffd"


@contextmanager
def _backend_errors(where: str) -> Iterator[None]:
    """Turn the errors of the library `tokenizers`, panics of its Rust code among them, into InputError."""
    try:
        yield
    except InputError:
        raise
    except BaseException as error:
        # A panic is no Exception, and its class can only be told by its name.
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        raise InputError(f"{where} ({' '.join(str(error).split())[:200]})") from None


def read_backend(file: Path) -> Backend:
    """Read a `tokenizer.json`; raise InputError if it is damaged or has a rule that may take too long."""
    values = read_json(file)
    values["truncation"] = values["padding"] = None  # texts are cut and padded elsewhere
    for problem in _problems(values):
        raise InputError(f"{file}: {problem}")
    with _backend_errors(f"{file}: not a tokenizer"):
        backend = Backend.from_str(json.dumps(values))
        ids = backend.get_vocab().values()
        if not all(0 <= i < len(ids) for i in ids):
            raise InputError(f"{file}: its {len(ids):,} tokens do not have the ids 0 to {len(ids) - 1:,}")
        found = backend.encode(_PROBE).ids
        if found and max(found) >= len(ids):
            raise InputError(f"{file}: gives a text the id {max(found):,}, but has only {len(ids):,} tokens")
    return backend


@cache
def _own_rules() -> tuple[Any, list[Any]]:
    """Return the normalizer of `simllm.text_cleaning` as JSON values, whole and as a list of its rules."""
    whole = json.loads(normalizer().__getstate__())
    return whole, whole["normalizers"]


def _problems(values: dict[str, Any]) -> Iterator[str]:
    """Yield what is dangerous in the content of a `tokenizer.json`; its form is checked by the library."""
    model = values.get("model")
    if isinstance(model, dict):
        if model.get("dropout"):
            yield "its model has a dropout, so that a text has other tokens each time"
        longest = model.get("max_input_chars_per_word")
        if isinstance(longest, int) and longest > _LONGEST_TOKEN:
            yield f"max_input_chars_per_word is over {_LONGEST_TOKEN:,}"
        tokens = model.get("vocab")
        if isinstance(tokens, dict) and any(len(token) > _LONGEST_TOKEN for token in tokens):
            yield f"a token has over {_LONGEST_TOKEN:,} characters"
    own, own_rules = _own_rules()
    normal = values.get("normalizer")
    if normal != own:
        rules, growth, unused = list(_rules(normal)), 1.0, list(own_rules)
        if len(rules) > _MOST_RULES:
            yield f"its normalizer has over {_MOST_RULES} rules"
        for rule in rules:
            if rule in unused:  # once only: in a row, they lengthen a text, too
                unused.remove(rule)
            elif str(rule.get("type")) not in _NORMALIZERS:
                yield f"the normalizer {rule.get('type')!r:.40} is not supported"
            else:
                growth *= _growth(rule)
        if growth > _GROWTH:
            yield f"its normalizer may make a text over {_GROWTH} times longer"
    known = {rule["pattern"]["Regex"] for rule in own_rules if "Regex" in rule.get("pattern", {})}
    for part in ("normalizer", "pre_tokenizer", "post_processor", "decoder"):
        for pattern in _regular_expressions(values.get(part)):
            if pattern not in known and not _is_linear(pattern):
                yield f"the regular expression {pattern!r:.60} may take too long (at most one repetition)"


def _rules(values: Any) -> Iterator[dict[str, Any]]:
    """Yield the rules of a normalizer, given as JSON values, without the sequences around them."""
    if isinstance(values, dict):
        if isinstance(parts := values.get("normalizers"), list):
            for part in parts:
                yield from _rules(part)
        else:
            yield values


def _growth(rule: dict[str, Any]) -> float:
    """Return how many times longer a rule of a normalizer may make a text."""
    if rule.get("type") == "Prepend" and len(str(rule.get("prepend"))) > _LONGEST_TOKEN:
        return math.inf
    if rule.get("type") != "Replace":
        return 1
    pattern, new = rule.get("pattern"), len(str(rule.get("content")))
    replaced = pattern.get("String") if isinstance(pattern, dict) else None
    if isinstance(replaced, str) and replaced:
        return max(1, new / len(replaced))
    return 1 + new  # a regular expression may match between all characters


def _regular_expressions(values: Any) -> Iterator[str]:
    if isinstance(values, dict) and isinstance(pattern := values.get("Regex"), str):
        yield pattern
    if isinstance(values, dict | list):
        for part in values.values() if isinstance(values, dict) else values:
            yield from _regular_expressions(part)


def _is_linear(pattern: str) -> bool:
    """Return whether matching from one place surely takes time in proportion to the text's length."""
    bare = re.sub(r"\\[^gk0-9]", "x", pattern)  # escaped characters
    repetitions = re.findall(r"\)?[*+?{]", re.sub(r"\(\?(?:[:>=!]|<[=!])", "(", bare))
    # At most one character or class may be repeated. Two repetitions side by side or inside each other can
    # take quadratic or exponential time. So can a repeated group, a reference to a group, and a group that
    # calls itself.
    return (
        len(pattern) <= 10_000
        and len(repetitions) <= 1
        and not any(found.startswith(")") for found in repetitions)
        and "\\" not in bare
    )


class Tokenizer:
    """Tokenizer that cleans texts and turns them into token ids, from the id of `<s>` to that of `</s>`.

    For example, cleaning removes comment marks and lower-cases letters. A special token that is written out
    in a text, such as "<mask>", is ordinary text.
    """

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        # Despite its name, this option makes special tokens in a text ordinary text.
        self.backend.encode_special_tokens = True
        self.backend.no_padding()
        self.backend.no_truncation()
        first_tokens = tuple(backend.id_to_token(i) for i in range(len(SPECIAL_TOKENS)))
        if first_tokens != SPECIAL_TOKENS:
            raise InputError(f"the first tokens are {first_tokens}, expected {SPECIAL_TOKENS}")
        with _backend_errors("the tokenizer cannot split a text"):
            for text in ("", _PROBE):
                inner = backend.encode(text, add_special_tokens=False).ids
                if backend.encode(text).ids != [0, *inner, 2]:
                    raise InputError(
                        "the ids of a text do not begin with that of <s> and end with that of </s>"
                    )

    @classmethod
    def load(cls, file: Path) -> Tokenizer:
        """Load a `tokenizer.json`; raise InputError if the file is missing or damaged."""
        if not file.is_file():
            raise InputError(f"{file}: no such file; expected the tokenizer of a model folder")
        backend = read_backend(file)
        try:
            return cls(backend)
        except InputError as error:
            raise InputError(f"{file}: {error}") from None

    @property
    def vocab_size(self) -> int:
        """Number of tokens in the vocabulary, special tokens included."""
        return self.backend.get_vocab_size()

    @cached_property
    def hash(self) -> str:
        """Hash of everything that can change token ids."""
        return hashlib.sha256(self.backend.to_str().encode()).hexdigest()[:12]

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Clean and tokenize texts; only their first `LONGEST` characters are read.

        An empty text has only the ids of `<s>` and `</s>`.
        """
        ids: list[list[int]] = []
        chunk: list[str] = []
        space = _CHUNK
        for text in (text[:LONGEST] for text in texts):
            if chunk and len(text) > space:
                ids += self._encode_chunk(chunk)
                chunk, space = [], _CHUNK
            # The strings of the backend, which is written in Rust, cannot hold lone surrogates.
            chunk.append(encodable(text))
            space -= len(text)
        return ids + self._encode_chunk(chunk)

    def _encode_chunk(self, texts: list[str]) -> list[list[int]]:
        with _backend_errors("the tokenizer cannot split a text"):
            return [encoding.ids for encoding in self.backend.encode_batch_fast(texts)]

    def id_to_token(self, number: int) -> str:
        """Return the token whose id is `number`."""
        return str(self.backend.id_to_token(number))

    @staticmethod
    def truncate(ids: list[int], longest: int) -> list[int]:
        """Shorten the token ids of a text to at most `longest`, but keep the last: the id of `</s>`."""
        return ids if len(ids) <= longest else [*ids[: longest - 1], ids[-1]]
