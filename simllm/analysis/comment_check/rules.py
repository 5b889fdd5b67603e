"""The rules that find broken claims: hard evidence that a comment and its code disagree."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher

from simllm.analysis.comment_check.documentation import Claim, Documentation, read_documentation
from simllm.analysis.comment_check.functions import CheckedFunction, Parameter

# The rules, with what each finds; strongest evidence first.
RULES = {
    "unknown-parameter": "A documented parameter does not exist.",
    "changed-default": "The documented default value is not that of the code.",
    "missing-return": "A return value is documented, but the function returns nothing.",
    "other-name": "The comment names another function than the one that it documents.",
    "undocumented-parameter": "A parameter is new, and the only one without documentation.",
    "missing-exception": "A documented exception is no longer raised.",
    "missing-value": "A name, number or text in the comment was in the code, and no longer is.",
    "lower-fit": "The code changed, and the comment fits it much worse than before.",
    "poor-fit": "The comment does not fit the code, as the model reads them.",
}


@dataclass(frozen=True)
class BrokenClaim:
    """A claim of a comment that the code contradicts, with the rule's name and the reason in one line."""

    rule: str
    claim: Claim
    reason: str


def broken_now(function: CheckedFunction) -> list[BrokenClaim]:
    """Return the claims that the code contradicts, whatever the code was before."""
    documentation = read_documentation(function.comment, function.language)
    rules = (_unknown_parameters, _wrong_defaults, _missing_return, _other_name)
    return [broken for rule in rules for broken in rule(function, documentation)]


def broken_by_change(
    old: CheckedFunction, new: CheckedFunction, is_in_file: Callable[[str], bool]
) -> list[BrokenClaim]:
    """Return the claims that were right of the old code, and are wrong of the new code.

    `is_in_file` tells whether a name still occurs in the code of the new file.
    """
    documentation = read_documentation(new.comment, new.language)
    change = _Change(old, new, documentation, is_in_file)
    before = {(broken.rule, broken.claim.value) for broken in broken_now(old)}
    found = [broken for broken in broken_now(new) if (broken.rule, broken.claim.value) not in before]
    found += [*_gone_parameters(change), *_new_parameters(change)]
    if not is_cosmetic(old, new):
        found += [*_gone_exceptions(change), *_gone_values(change)]
    order = list(RULES)
    # The strongest evidence about each name and sentence counts.
    best = dict[str, BrokenClaim]()
    for broken in sorted(found, key=lambda each: order.index(each.rule)):
        is_value = broken.rule == "missing-value"
        if not (is_value and any(broken.claim.sentence in other.claim.sentence for other in best.values())):
            best.setdefault(broken.claim.value or broken.rule, broken)
    return list(best.values())


def is_cosmetic(old: CheckedFunction, new: CheckedFunction) -> bool:
    """Return whether two versions differ at most in layout, comments, types and names of local variables."""
    if len(old.tokens) != len(new.tokens):
        return False
    names, back = dict[str, str](), dict[str, str]()
    for at, (before, after) in enumerate(zip(old.tokens, new.tokens, strict=True)):
        if before != after:
            words = re.fullmatch(r"[$@]?[^\W\d]\w*", before) and re.fullmatch(r"[$@]?[^\W\d]\w*", after)
            is_member = at > 0 and old.tokens[at - 1] in (".", "->", "::", "?.", "@", ":")
            if not words or is_member or before in old.calls or after in new.calls:
                return False
        if names.setdefault(before, after) != after or back.setdefault(after, before) != before:
            return False
    return True


@dataclass(frozen=True)
class _Change:
    """Two versions of a function with the same documentation."""

    old: CheckedFunction
    new: CheckedFunction
    documentation: Documentation
    is_in_file: Callable[[str], bool] = field(repr=False)

    @property
    def has_new_calls(self) -> bool:
        """Whether code may have moved to another function, which the new version calls."""
        return not self.new.calls <= self.old.calls


def _names(function: CheckedFunction) -> list[str]:
    return [parameter.name for parameter in function.parameters or ()]


_OTHER_SUBJECT = re.compile(
    r"[@\\](?:typedef|callback|event|class|constructor|name|method|function|overload|lends|fn|def|see\s+\S+\s*$)\b|@!"
)
_RECEIVERS = ("self", "cls", "this")
_READS_ANY = re.compile(r"\barguments\b|\bfunc_get_args?\b|\blocals\b")


def _unknown_parameters(function: CheckedFunction, documentation: Documentation) -> Iterator[BrokenClaim]:
    parameters = function.parameters
    # Options may stand in a dictionary, and the parameters of a callback in the comment.
    is_open = parameters is None or any(not parameter.name for parameter in parameters)
    if function.language in ("python", "ruby", "javascript", "typescript"):
        is_open = is_open or any(parameter.is_rest for parameter in parameters or ())
    # The comment of a property may describe the object, which can be called.
    is_open = is_open or any("property" in word for word in function.decorators)
    is_open = is_open or bool(_READS_ANY.search(function.joined))
    # JavaScript passes an empty function any arguments; the comment is for those that override it.
    is_script = function.language in ("javascript", "typescript")
    is_open = is_open or (is_script and function.tokens[-2:] == ("{", "}"))
    if is_open or _OTHER_SUBJECT.search("\n".join(documentation.lines)):
        return
    # A decorator may take a parameter that it names.
    known = {*_names(function), *function.type_parameters, *function.decorators}
    claims = documentation.of_kind("parameter")
    described = {*(claim.value for claim in claims), *_RECEIVERS}
    missing = [name for name in _names(function) if name not in described]
    # A function inside may have the parameters that the comment describes.
    unknown = [
        claim
        for claim in claims
        if claim.value not in known
        and not (function.has_inner and function.mentions(claim.value))
        and not _is_unused(claim.value, _names(function))
    ]
    for claim in unknown:
        hint = f"; `{missing[0]}` is not documented" if len(missing) == len(unknown) == 1 else ""
        yield BrokenClaim("unknown-parameter", claim, f"there is no parameter `{claim.value}`{hint}")


def _is_unused(name: str, names: Sequence[str]) -> bool:
    """Return whether a parameter is called `_` or `_name` because the code does not use it."""
    return "_" in names or f"_{name}" in names


def _gone_parameters(change: _Change) -> Iterator[BrokenClaim]:
    """Yield documented parameters that a change removed, also where `_unknown_parameters` cannot tell."""
    if change.new.parameters is None:
        return
    before, after = _names(change.old), _names(change.new)
    added = [name for name in after if name and name not in before]
    is_open = any(parameter.is_rest or not parameter.name for parameter in change.new.parameters)
    for claim in change.documentation.of_kind("parameter"):
        if claim.value in before and claim.value not in {*after, *change.new.type_parameters}:
            if (is_open and change.new.mentions(claim.value)) or _is_unused(claim.value, added):
                continue
            hint = f"; `{added[0]}` is new" if len(added) == 1 else ""
            yield BrokenClaim("unknown-parameter", claim, f"the parameter `{claim.value}` is gone{hint}")


def _new_parameters(change: _Change) -> Iterator[BrokenClaim]:
    """Yield parameters that a change added, if the comment describes all the others."""
    claims = change.documentation.of_kind("parameter")
    # A tag that has only a type and a name says nothing that the signature does not.
    described = {claim.value for claim in claims if re.search(rf"\b{claim.value}\b.*\s\w", claim.sentence)}
    others = [
        p for p in change.old.parameters or () if not p.is_rest and p.name not in ("self", "cls", "this")
    ]
    if not others or not all(parameter.name in described for parameter in others):
        return
    # A renamed parameter has an alarm already.
    if len(others) > len({parameter.name for parameter in others} & set(_names(change.new))):
        return
    for parameter in change.new.parameters or ():
        is_new = parameter.name and parameter.name not in _names(change.old) and not parameter.is_rest
        if (
            is_new
            and not parameter.name.startswith("_")
            and not change.documentation.has_word(parameter.name)
        ):
            claim = Claim("parameter", parameter.name, claims[-1].sentence, claims[-1].line)
            yield BrokenClaim(
                "undocumented-parameter", claim, f"the parameter `{parameter.name}` is new, and not described"
            )


_DEFAULT = re.compile(
    r"(?i)(?<![\"'\w])defaults?(?:\s+(?:value|is|to|of))*\s*[:=]?\s*[`*]{0,2}"
    r"(?P<value>-?\d+(?:\.\d+)?(?:e-?\d+)?(?![\w.]*\w|\s?%)|(?:true|false|none|null|nil)\b|(?P<quote>['\"])[^'\"]*(?P=quote))"
)


def _wrong_defaults(function: CheckedFunction, documentation: Documentation) -> Iterator[BrokenClaim]:
    defaults = {parameter.name: parameter for parameter in function.parameters or ()}
    for claim in documentation.of_kind("parameter"):
        found = _DEFAULT.findall(claim.sentence)
        parameter = defaults.get(claim.value)
        # With several values, as for several cases, nothing is certain.
        if len(found) != 1 or not parameter:
            continue
        said, actual = _literal(found[0][0]), _default(parameter)
        # None often stands for a value that the body chooses.
        if actual is not None and actual[0] != "nothing" and said is not None and said != actual:
            # 0 stands for false, and "none" for None; some authors quote all values.
            if {said[0], actual[0]} == {"number", "truth"} or (not said[1] and actual[1] in ("", "none")):
                continue
            if said[0] == "text" and _literal(str(said[1])) == actual:
                continue
            yield BrokenClaim(
                "changed-default",
                claim,
                f"the default of `{claim.value}` is {parameter.default}, not {found[0][0]}",
            )


def _default(parameter: Parameter) -> tuple[str, object] | None:
    return _literal(parameter.default) if parameter.default else None


def _literal(source: str) -> tuple[str, object] | None:
    """Return kind and value of a literal that means the same in all languages; None for other code."""
    plain = source.strip().rstrip(",;")
    if re.fullmatch(r"-?\d[\d_]*(?:\.\d*)?(?:[eE]-?\d+)?", plain):
        return "number", float(plain.replace("_", ""))
    if plain.lower() in ("true", "false"):
        return "truth", plain.lower()
    if plain.lower() in ("none", "null", "nil", "undefined", "nullptr"):
        return "nothing", None
    if quoted := re.fullmatch(r"u?(['\"])([^'\"\\]*)\1", plain):
        return "text", quoted[2]
    return None


def _missing_return(function: CheckedFunction, documentation: Documentation) -> Iterator[BrokenClaim]:
    if function.returns is not False or _OTHER_SUBJECT.search("\n".join(documentation.lines)):
        return
    is_promise = re.search(r"\basync\b", " ".join(function.tokens[:4]))
    for claim in documentation.of_kind("return")[:1]:
        if not is_promise and "Promise" not in claim.sentence:
            yield BrokenClaim("missing-return", claim, "the function returns no value")


def _other_name(function: CheckedFunction, documentation: Documentation) -> Iterator[BrokenClaim]:
    """Yield the first word of a Go comment if it is the name of another function."""
    if function.language != "go":
        return
    first = next((line for line in documentation.lines if line.strip()), "")
    name = re.match(r"\s*(?P<name>[A-Za-z]+[a-z0-9]+(?:[A-Z]\w*)+)\s+[a-z]", first)
    if name and name["name"] != function.own_name and not function.mentions(name["name"]):
        claim = Claim("name", name["name"], first.strip(), documentation.lines.index(first))
        reason = f"the function is called `{function.own_name}`, not `{name['name']}`"
        yield BrokenClaim("other-name", claim, reason)


def _gone_exceptions(change: _Change) -> Iterator[BrokenClaim]:
    for claim in change.documentation.of_kind("raise"):
        was_raised = claim.value in change.old.raised and not change.new.mentions(claim.value)
        if was_raised and not change.has_new_calls:
            yield BrokenClaim("missing-exception", claim, f"the code no longer raises `{claim.value}`")


_EMPTY_VALUES = frozenset("true false null none nil undefined self this super True False None NaN".split())


def _gone_values(change: _Change) -> Iterator[BrokenClaim]:
    """Yield names that the file no longer has, and numbers and texts that another literal replaces."""
    old, new = change.old, change.new
    replaced = _replaced(old.tokens, new.tokens)
    defaults = {parameter.default.strip("'\"") for parameter in old.parameters or ()}
    for claim in change.documentation.claims:
        value = claim.value
        if claim.kind not in ("name", "number", "text") or not old.mentions(value) or new.mentions(value):
            continue
        now = replaced.get(value.lstrip("-") if claim.kind == "number" else value, "")
        if claim.kind != "name":
            # Other values of a parameter than its default are still allowed.
            if value in defaults and "default" not in claim.sentence.lower():
                continue
            # A value that moved to a constant or to another function still holds.
            if now and (_literal(now) or ("", ""))[0] == claim.kind:
                yield BrokenClaim("missing-value", claim, f"the code has {now} in place of {value}")
        elif not _is_name_in(value, old.tokens):  # a word in a text
            continue
        elif value == old.own_name != new.own_name:
            yield BrokenClaim("other-name", claim, f"the function is now called `{new.own_name}`")
        # A name that the file still has may have moved to another function.
        elif len(value) > 2 and value not in _EMPTY_VALUES and not change.is_in_file(value):
            hint = f"; `{now}` stands in its place" if re.fullmatch(r"[^\W\d]\w*", now) else ""
            yield BrokenClaim("missing-value", claim, f"`{value}` is no longer in the code{hint}")


def _is_name_in(name: str, tokens: Sequence[str]) -> bool:
    return any(token.lstrip("$@:") == name for token in tokens)


def _replaced(old: Sequence[str], new: Sequence[str]) -> dict[str, str]:
    """Map tokens to the single tokens that replace them in the new code; texts are without quotes."""
    found = dict[str, str]()
    for action, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if action == "replace" and b - a == d - c:
            for before, after in zip(old[a:b], new[c:d], strict=True):
                found[before.strip("'\"")] = after
    return found
