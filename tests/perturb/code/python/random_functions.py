"""Random small Python functions over integers and lists, as strategies of hypothesis."""

from hypothesis import strategies as st

NAMES = ["a", "b", "n", "t"]
LOOPS = ["i", "j"]


@st.composite
def expressions(draw, depth=2):
    """Draw an expression over integers; lists appear in len(xs) and indexing only."""
    if depth == 0 or draw(st.booleans()):
        return draw(st.sampled_from([*NAMES, *LOOPS, "0", "1", "-2", "3", "len(xs)", "xs[a % len(xs)]"]))
    left, right = draw(expressions(depth - 1)), draw(expressions(depth - 1))
    form = draw(
        st.sampled_from(
            ["{} + {}", "({} - {})", "{} * {}", "helper({}, {})", "[k * ({}) for k in range(2)][0] + {}"]
        )
    )
    return form.format(left, right)


@st.composite
def conditions(draw, depth=2):
    """Draw a condition."""
    if depth == 0 or draw(st.booleans()):
        left, right = draw(expressions(1)), draw(expressions(1))
        form = "{} < {}|{} >= {}|{} == {}|{} != {}|{} is None or {}|{} in (1, {})|{} not in [{}]|{} < {} < 5"
        return draw(st.sampled_from(form.split("|"))).format(left, right)
    left, right = draw(conditions(depth - 1)), draw(conditions(depth - 1))
    form = "{} and {}|{} or {}|not ({})|(not {} or {})|(y := {}) and ({})|{} and ({} or a)"
    return draw(st.sampled_from(form.split("|"))).format(left, right)


def indent(lines):
    return ["    " + line for line in lines]


@st.composite
def blocks(draw, depth=3, in_loop=False):
    """Draw the lines of a block: one to three statements."""
    lines = []
    for _ in range(draw(st.integers(1, 3))):
        lines += draw(statements(depth, in_loop))
    return lines


@st.composite
def statements(draw, depth, in_loop):
    """Draw the lines of a statement."""
    kinds = ["assign", "add", "append", "text", "return"] + ["continue", "break"] * in_loop
    if depth:
        kinds += ["for", "for", "while", "if", "if", "chain", "try", "def", "inline"]
    kind = draw(st.sampled_from(kinds))
    name = draw(st.sampled_from(NAMES))
    if kind == "assign":
        return [f"{name} = {draw(expressions())}  # set"]
    if kind == "add":
        return [f"{name} {draw(st.sampled_from(['+=', '-=']))} {draw(st.sampled_from(['1', '2', name]))}"]
    if kind == "append":
        return [f"out.append({draw(expressions())})"]
    if kind == "text":
        return ['out.append(f"""{a}', f'  {{{name} < 3}}""")']
    if kind == "return":
        return [f"if {draw(conditions())}: return {name}"]
    if kind in ("continue", "break"):
        return [f"if {draw(conditions(1))}:", f"    {kind}"]
    if kind == "for":
        loop, step = (
            draw(st.sampled_from(LOOPS)),
            draw(st.sampled_from(["", "0, ", "1, ", "len(xs), ", "n, "])),
        )
        stop = draw(st.sampled_from(["3", "len(xs)", f"min(4, {draw(expressions(1))})"]))
        jump = draw(st.sampled_from(["", ", 2", ", -1"])) if step else ""
        body = draw(blocks(depth - 1, True))
        rest = ["else:", "    out.append(7)"] if draw(st.integers(0, 5)) == 0 else []
        return [f"for {loop} in range({step}{stop}{jump}):", *indent([f"out.append({loop})", *body]), *rest]
    if kind == "while":
        return ["w = 2", "while w > 0:", "    w -= 1", *indent(draw(blocks(depth - 1, True)))]
    if kind == "try":
        tail = (
            ["finally:", "    out.append(9)"]
            if draw(st.booleans())
            else ["except IndexError as e:", "    a = 1"]
        )
        return ["try:", *indent(draw(blocks(depth - 1, in_loop))), *tail]
    if kind == "def":
        return ["def g(p, q=1):", "    return p + q + t", f"out.append(g(1, q={draw(expressions(1))}))"]
    if kind == "inline":
        return [f"if {draw(conditions(1))}: a = 2; out.append(a)", "else: b = 3  # other"]
    lines = [f"if {draw(conditions())}:", *indent(draw(blocks(depth - 1, in_loop)))]
    if kind == "chain":
        for _ in range(draw(st.integers(1, 3))):
            lines += [
                f"elif {draw(conditions(1))}:",
                "    # a comment",
                *indent(draw(blocks(depth - 1, in_loop))),
            ]
    if draw(st.booleans()):
        lines += ["else:", *indent(draw(blocks(depth - 1, in_loop)))]
    return lines


@st.composite
def functions(draw):
    """Draw the source of a function `f(n, xs, out)`."""
    start = [f"{name} = {draw(st.sampled_from(['0', '1', 'n', 'len(xs)']))}" for name in ("a", "b", "t")]
    lines = ["def f(n, xs, out):", *indent([*start, *draw(blocks()), "return a, b, n, t"])]
    return "".join(line + "\n" for line in _unindent_strings(lines))


def _unindent_strings(lines):
    """Indent the second line of each two-line string by two spaces, whatever the indentation of the code."""
    return ["  " + line.lstrip() if line.endswith('""")') else line for line in lines]
