import pytest

from simllm.perturb.code.proof import java_inputs, python_inputs
from simllm.perturb.code.proof.arguments import DrawnValues


@pytest.mark.parametrize(("low", "high"), [(-128, 127), (0, 0), (5, 9), (-(1 << 63), (1 << 63) - 1)])
def test_integers_are_in_their_range(low, high):
    values = DrawnValues("int f() { return 300; }", seed=0)
    drawn = {values.integer(low, high) for _ in range(500)}
    assert all(low <= value <= high for value in drawn)
    assert {low, high} <= drawn


def test_literals_of_the_function_are_inputs():
    values = DrawnValues("if (x == 4321 || s.equals(\"key\")) c = 'q'", seed=0)
    assert {4320, 4321, 4322} <= {values.integer() for _ in range(500)}
    texts = {values.text() for _ in range(500)}
    assert {"key", "", "q"} <= texts
    assert any("key" in text and text != "key" for text in texts)


def test_inputs_are_repeatable_and_differ_by_seed():
    def draw(seed):
        signature = java_inputs.find_signature("int f(Map<String, int[]> m, double x) { return 1; }")
        return java_inputs.draw_inputs(signature.parameters, "source", 64, seed)

    assert draw(0) == draw(0) != draw(1)
    assert len(set(draw(0))) == 64


@pytest.mark.parametrize(
    ("source", "erased", "unknown"),
    [
        ("void f() { }", [], []),
        ("void f(final int a[], String... b) { }", ["int[]", "String[]"], []),
        ("void f(java.util.List<? extends Number> a, int[][] b[]) { }", ["List", "int[][][]"], []),
        ("<T extends Comparable<T>> void f(T a, Set<T> b) { }", ["Integer", "Set"], []),
        ("void f(Foo a, List<Bar> b, Foo c, int d) { }", ["Foo", "List", "Foo", "int"], ["Foo", "Bar"]),
        ("Point(@Nullable String name) { }", ["String"], []),
    ],
)
def test_types_of_java_parameters(source, erased, unknown):
    signature = java_inputs.find_signature(source)
    assert [kind.erased for kind in signature.parameters] == erased
    assert java_inputs.unknown_types(signature.parameters) == unknown


@pytest.mark.parametrize(
    ("annotation", "types"),
    [
        ("int", int),
        ("'str'", str),
        ("Optional[bool]", (bool, type(None))),
        ("int | None", (int, type(None))),
        ("typing.List[float]", list),
        ("dict[str, list[int]]", dict),
        ("Tuple[int, str]", tuple),
        ("Literal['a', 3]", (str, int)),
        ("frozenset[int]", frozenset),
        ("bytes", bytes),
        ("Iterator[int]", type(iter([]))),
    ],
)
def test_python_arguments_have_the_annotated_types(annotation, types):
    source = f"def f(x: {annotation}): pass"
    inputs = python_inputs.draw_inputs(python_inputs.find_signature(source), source, 32, 0)
    constants = {"nan": float("nan"), "inf": float("inf")}
    assert inputs
    assert all(isinstance(eval(text, dict(constants)), types) for (text,), _, _ in inputs)


def test_python_arguments_fit_the_parameters():
    source = "def f(a, b=1, *rest, c, d=2): pass"
    signature = python_inputs.find_signature(source)
    inputs = python_inputs.draw_inputs(signature, source, 64, 0)
    assert {len(positional) for positional, _, _ in inputs} == {1, 2, 3, 4, 5}
    assert {tuple(named) for _, named, _ in inputs} == {("c",), ("c", "d")}
