"""Properties of rewritten Python code: it behaves as before, whichever sites are chosen."""

import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

from simllm.perturb.code import DEFAULT_RULES, restore, rewrite
from simllm.perturb.code.python.rules import RULES
from simllm.perturb.code.rules import RENAMES
from simllm.perturb.code.units import Symbol
from tests.perturb.code.python.random_functions import functions

pytestmark = pytest.mark.filterwarnings("ignore::SyntaxWarning")  # `3 is None`
EVERY = [*RENAMES, *RULES.structural]
inputs = st.lists(
    st.tuples(st.integers(-3, 5), st.lists(st.integers(-3, 3), max_size=3)), min_size=3, max_size=3
)


class Output(list):
    """A list that raises an error at about 10,000 items, so that endless loops in wrong code stop."""

    def append(self, value):
        if len(self) > 10_000:
            raise MemoryError
        super().append(value)


def run(source, arguments):
    """Call f(n, xs, out) for all `arguments`; return each result or exception, and the final xs and out."""
    module = {"helper": lambda x, y: x - y}
    exec(compile(source, "<code>", "exec"), module)
    function = next(value for key, value in module.items() if key.startswith("f"))
    outcomes = []
    for n, xs in arguments:
        xs, out = list(xs), Output()
        try:
            result = repr(function(n, xs, out))
        except Exception as error:
            result = type(error).__name__
        outcomes.append((result, xs, out))
    return outcomes


def check(source, arguments, rules, share, seed):
    new = rewrite(source, "python", rules, longer, share=share, seed=seed).text
    assert run(new, arguments) == run(source, arguments), new


def longer(name, kind, values):
    return [f"{name}_v"]


@settings(max_examples=60)
@given(functions(), inputs, st.sampled_from([1.0, 0.5]), st.integers(0, 9))
def test_rewritten_functions_behave_as_before(source, arguments, share, seed):
    check(source, arguments, EVERY, share, seed)


@pytest.mark.parametrize("rule", EVERY)
def test_random_functions_have_places_for_every_rule(rule):
    # The same functions each time, enough for the rarest rule; the smallest such function is not needed.
    first = settings(phases=[Phase.generate], derandomize=True, max_examples=2000, deadline=None)
    find(functions(), lambda source: rewrite(source, "python", [rule], longer).counts[rule], settings=first)


@pytest.mark.slow
@settings(max_examples=120)
@given(functions(), inputs, st.sampled_from([1.0, 0.5]), st.integers(0, 9), st.permutations(EVERY))
def test_rules_in_any_order_keep_the_behaviour(source, arguments, share, seed, rules):
    check(source, arguments, rules[:5], share, seed)


@settings(max_examples=40)
@given(functions(), st.sampled_from([1.0, 0.5]), st.integers(0, 9))
def test_renames_can_be_undone(source, share, seed):
    found = rewrite(source, "python", DEFAULT_RULES[:3], longer, share=share, seed=seed)
    assert restore(found.text, found.names) == source


@settings(max_examples=30)
@given(functions(), st.sampled_from(["\t", "  "]), st.booleans())
def test_other_line_ends_and_indents_are_kept(source, step, is_windows):
    if step == "\t":
        source = source.replace("    ", step)
    source = source.replace("\n", "\r\n") if is_windows else source
    new = rewrite(source, "python", EVERY, longer).text
    compile(new, "<code>", "exec")
    assert new.count("\r\n") == (new.count("\n") if is_windows else 0)


@given(functions())
@settings(max_examples=20)
def test_symbols_hold_their_name(source):
    unit = RULES.parse(source.encode())
    for symbol in RULES.symbols(unit):
        if isinstance(symbol, Symbol):
            assert {unit.text[use.start : use.end].decode() for use in symbol.uses} == {symbol.name}
            assert sorted(set(symbol.uses)) == list(symbol.uses)
