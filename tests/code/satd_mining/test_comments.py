"""Comments that admit debt, and the functions to which comments belong, in every language."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simllm.code.languages.language import LANGUAGE_OF_SUFFIX
from simllm.code.satd_mining.comments import (
    DebtWords,
    FileComment,
    ParsedFile,
)
from simllm.errors import InputError

# For each language: code, and the function of each comment by the comment's number.
CODE = {
    "python": (
        """
# 0 above
@cached
@logged(1)
def f(x):
    # 1 before the first statement
    y = 1  # 2 after code
    # 3 after the last statement

# 4 about a class
class A:
    # 5 above a method
    def g(self):
        # 6 above an inner function
        def h():
            return 1  # 7 in an inner function

        # 8 after it
        return h
# 9 at the end
""",
        ["f", "f", "f", "f", None, "A.g", "A.g.h", "A.g.h", "A.g", None],
    ),
    "java": (
        """
// 0 about a class
class A {
    /** 1 above */
    @Override
    public void f() { // 2 in
        g(new B() { void g() { /* 3 in an anonymous class */ } });
    }

    // 4 above a constructor

    A() {}
    int x; // 5 after a field
    abstract void h();
    class B { void f() { /* 6 in an inner class */ } }
}
""",
        [None, "A.f", "A.f", "A.f.g", "A.A", None, "A.B.f"],
    ),
    "javascript": (
        """
// 0 above
export const f = async () => { // 1 in
  g(() => { /* 2 in a nameless function */ });
};
class A {
  /* 3 above */
  m() {}
}
// 4 above
module.exports.k = function () {};
const o = {
  // 5 above
  p: function () { return 1; }, // 6 after
};
// 7 above
export default function q() {}
""",
        ["f", "f", "f", "A.m", "k", "p", None, "q"],
    ),
    "typescript": (
        """
class A {
  // 0 above
  @dec() @other m(): void { // 1 in
  }
}
interface I {
  // 2 above
  f(): void;
}
// 3 above
export async function g(): Promise<void> {}
""",
        ["A.m", "A.m", "I.f", "g"],
    ),
    "go": (
        """
package a

// 0 above
func (s *Stack[T]) Push() {
\t// 1 in
\tf := func() { /* 2 in a nameless function */ }
}

// 3 about a type
type I interface {
\t// 4 above
\tPop()
}
""",
        ["Stack.Push", "Stack.Push", "Stack.Push", None, "I.Pop"],
    ),
    "ruby": (
        """
module M
  class A
    # 0 above
    def f(x)
      1 # 1 in
      # 2 after the last statement
    end
=begin
3 above
=end
    def self.g
    end
  end
end
""",
        ["M.A.f", "M.A.f", "M.A.f", "M.A.g"],
    ),
    "php": (
        """<?php
class A {
    // 0 above
    #[Attribute]
    public function f() { return 1; # 1 in
    }
}
/* 2 above */
function g() { $x = function () { /* 3 in a nameless function */ }; }
""",
        ["A.f", "A.f", "g", "g"],
    ),
    "cpp": (
        """
// 0 above
template <class T> T f(T x) {
    // 1 above a variable that looks like a function
    std::string s(name);
    return x;
}
namespace n {
class C {
    // 2 above
    void m();
    ~C() { /* 3 in */ }
};
void C::m() { /* 4 in */ }
}
""",
        ["f", "f", "n.C.m", "n.C.~C", "n.C.m"],
    ),
}


def test_every_language_has_a_case():
    assert set(CODE) == set(LANGUAGE_OF_SUFFIX.values())


@pytest.mark.parametrize("language", CODE)
def test_function_of_each_comment(language):
    code, expected = CODE[language]
    file = ParsedFile(code.encode(), language)
    found = [file.function_of(comment) for comment in file.comments]
    assert [function.name if function else None for function in found] == expected
    for number, comment in enumerate(file.comments):
        assert str(number) in comment.text
        assert file.code[comment.start : comment.end].decode() == comment.text


def texts(code, language="python"):
    return [comment.text for comment in ParsedFile(code.encode(), language).comments]


def test_line_comments_on_consecutive_lines_are_one_comment():
    assert texts("# a\n# b\nx = 1\n# c\n") == ["# a\n# b", "# c"]
    assert texts("def f():\n    # a\n    # b\n    #\n    # c\n    pass\n") == ["# a\n    # b\n    #\n    # c"]
    assert texts("# a\n\n# b\n") == ["# a", "# b"]
    assert texts("x = 1  # a\n# b\ny = 1  # c\nz = 1  # d\n") == ["# a", "# b", "# c", "# d"]
    assert texts("/* a */\n/* b */\n// c\n// d\nint x;\n", "java") == ["/* a */", "/* b */", "// c\n// d"]


def function(file, name):
    return next(function for function in file.functions if function.name == name)


def test_text_of_a_function_has_its_indentation_and_decorators():
    file = ParsedFile(b"class A:\n    @dec\n    def f(self):\n        pass\n", "python")
    span = function(file, "A.f")
    assert file.text(span.start, span.end) == "    @dec\n    def f(self):\n        pass"
    file = ParsedFile(b"class A { int x; void f() { }\n}", "java")
    span = function(file, "A.f")
    assert file.text(span.start, span.end) == "void f() { }"


def test_comment_after_code_is_not_above_the_next_function():
    file = ParsedFile(b"x = 1  # a\ndef f():\n    pass\n# b\n\n\ndef g():\n    pass\n", "python")
    assert file.comment_above(function(file, "f")) is None
    assert file.comment_above(function(file, "g")).text == "# b"
    assert file.comments_of(function(file, "g")) == [file.comments[1]]


def test_signature_has_no_comments_and_white_space():
    file = ParsedFile(b"int f( int a, // first\n  int b) /* c */ {\n return a; // d\n}\n", "cpp")
    assert file.signature(function(file, "f")) == b"intf(inta,intb)"


def test_long_chains_take_linear_time():
    ParsedFile(b"x = " + b"+".join([b"a"] * 50_000) + b"  # end\n", "python")


@given(st.sampled_from(sorted(CODE)), st.data())
def test_any_bytes_are_accepted(language, data):
    code = CODE[language][0].encode()
    start, end = sorted(data.draw(st.tuples(*[st.integers(0, len(code))] * 2)))
    file = ParsedFile(code[:start] + data.draw(st.binary(max_size=9)) + code[end:], language)
    for comment in file.comments:
        found = file.function_of(comment)
        assert found is None or found.contains(comment) or file.comment_above(found) == comment
    assert all(0 <= each.start <= each.body <= each.end <= len(file.code) for each in file.functions)


def comment(word):
    text = f"# {word} subtract the discount"
    return FileComment(text, 0, len(text), True)


@pytest.mark.parametrize(
    "word",
    "TODO todo: Todo(me) @todo #todo //TODO TODO-12 FIXME! HACK @hack XXX xxx: TODO\u4fee\u6b63".split(),
)
def test_words_that_admit_debt(word):
    code = f"def f():\n    {comment(word).text}\n    return 1".encode()
    assert DebtWords().admit(comment(word))
    assert DebtWords().may_be_in(code)
    assert DebtWords().lines_of(code) == {comment(word).text.encode(): 1}


@pytest.mark.parametrize(
    "word",
    "mastodons XXXL axxx afixmes whacks NOTE todos TODOs ToDoList hacky metodo m\u00e9todo me\u0301todo "
    "todo\u00f1 autotodo fixme_later _todo TODO2 shack HACKATHON".split(),
)
def test_words_that_do_not(word):
    assert not DebtWords().admit(comment(word))


@pytest.mark.parametrize(
    "text",
    [
        "# metodo para sumar los precios", "# a todos los clientes", "# fills the ToDoList of the user",
        "# a hacky way to sum", "# the hacker news of today", "# xxxs and ooos",
    ],
)  # fmt: skip
def test_words_of_other_languages_and_longer_words_are_no_debt(text):
    assert not DebtWords().admit(FileComment(text, 0, len(text), True))


def test_words_can_be_chosen():
    words = DebtWords(["Workaround", " to-do ", "c++"])
    assert words.words == ("workaround", "to-do", "c++")
    for text, found in (
        ("# WORKAROUND for a bug", 4), ("# To-do: sum the rows", 5), ("# use C++ here", 3),
        ("# TODO: sum the rows", 0), ("# workarounds are bad", 0), ("# into-do", 0), ("# a to-dot", 0),
    ):  # fmt: skip
        assert words.longest_line(FileComment(text, 0, len(text), True)) == (found, 0)
    for wrong in ("", "to do", "zu\u00e4ndern", "--"):
        with pytest.raises(InputError, match="expected words in ASCII"):
            DebtWords(["todo", wrong])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("// TODO", 1), ("// TODO: two", 2), ("// TODO: return two", 3), ("// sums the rows\n// TODO", 1),
        ("// TODO\n// sums the rows", 1), ("/*\n * sums the rows\n * FIXME: handle errors\n */", 3),
        ("# TODO\n# XXX breaks on names with blanks", 6), ("# sums the rows", 0),
    ],
)  # fmt: skip
def test_words_are_counted_on_the_line_of_the_debt(text, words):
    assert DebtWords().longest_line(FileComment(text, 0, len(text), True))[0] == words
