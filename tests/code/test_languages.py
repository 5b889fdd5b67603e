"""Documented functions are found in realistic snippets of each language."""

from collections import Counter

import pytest

from simllm.code.languages.language import LANGUAGE_OF_SUFFIX
from train.corpus.extract import extract

PYTHON = b'''
"""A module is no function."""

class Shelf(Furniture, metaclass=Meta):
    """A class is none, either."""

    @property
    def width(self):
        """The width of the shelf, in centimetres."""
        return 1

    async def load(
        self, books: list[str],
    ) -> None:  # slowly
        r\'\'\'Load the books\\shelves.

        :param books: what to load
        \'\'\'

def outer(a):
    # a remark

    "Keep the outermost."
    def inner():
        """Keep what is inside."""
    text = """
def fake():
    \'\'\'Never found here.\'\'\'
"""
    return {"a":
            "no docstring at all"}

def plain():
    x = 1
    """Not first, so no docstring."""
'''
JAVASCRIPT = b"""
/** Says hello to somebody. */
export default function hello(name) {}

/**
 * Adds two numbers
 * @param {number} a
 */
// eslint-disable-next-line
export const add = async (a, b) => a + b;

class Cart extends Base.Store {
  /** Puts an item into the cart. */
  @logged
  put(item) { return "/** Not a comment. */ function no() {}" }

  /** Empties the cart at once. */
  static empty = () => {};
}

/** Looks the user up. */

exports.find = function* (id) {};

/** Draws the next frame. */
Screen.prototype.draw = function () {};

const api = {
  /** Fetches the newest entries. */
  'newest': function () {},
  /** How many there are. */
  count: 3,
};

/** The number of all things. */
const total = 42;
// /** Says what is gone. */ function gone() {}
"""
TYPESCRIPT = b"""
/** Turns a value into text. */
export function text<T>(value: T): string;

export abstract class Parser<T> extends Reader<T> implements Source, Sink<T> {
  /** Reads the next token. */
  protected abstract next(): Token;

  /** Skips white space. */
  private skip = (): void => {};

  /** Peeks at the next token. */
  @memo()
  @log async peek<U>(): Promise<U> { return null!; }
}

interface Source {
  /** Opens the source again. */
  open(): void;
}
const a = <HTMLElement>b;
"""
JAVA = b"""
/** About a class. */
public class Box<T> extends Shape<T> implements Comparable<Box<T>>, java.io.Closeable {
    /** About a field. */
    private int width;

    /**
     * Makes an empty box.
     */
    public Box() { }

    /** Closes the lid. */
    @Override @SuppressWarnings("unused")
    public void close() throws IOException { String s = "/** Nothing. */"; }

    interface Lid {
        /** Opens the lid a little. */
        void open();
    }
//  /** Says what is gone. */
//  void gone() { }
}
"""
GO = b"""// Package shelf is no function.
package shelf

// Width is the width of a shelf.
const Width = 3

// Load puts the books
// on the shelf.
//
//go:noinline
func (s *Shelf[T]) Load(books []string) error { return nil }

// This is apart.

func Undocumented() {}

/*
Sort sorts the books.
*/
func Sort() {}

// Reader reads.
type Reader interface {
	Close() // not about the next
	// Read reads up to n bytes.
	Read(n int) error
}
"""
RUBY = b"""# frozen_string_literal: true
# About a module.
module Library
  # About a class.
  class Shelf < Furniture::Base
    # Loads the +books+ in order.
    #
    # @param books [Array] what to load
    def load(books)
    end

    #--
    # nothing for readers
    #++
    # Finds a book by its title.
    private def self.find(title)
    end

    ##########
    # Helpers
    ##########

    # Tells how many there are.
    def count; end

    # About a constant.
    LIMIT = 3

    # Apart from the method.

    def lone; end
=begin
Sorts all of the books.
=end
    def sort; end
  end
end
"""
PHP = b"""<?php
/** About the file. */

namespace Shop;

/** Adds two prices. */
function add(int $a, int $b): int { return $a + $b; }

/** About a class. */
abstract class Cart extends \\Base\\Store implements Countable, Sink {
    /** @var int how many */
    private $count;

    /**
     * Puts an item into the cart.
     *
     * @param Item $item
     */
    #[Pure]
    abstract public static function put(Item $item);
}
trait Lists {
    /** Lists what is in the cart. */
    function all() {}
}
"""
CPP = b"""
/** A class is no function. */
class Stack : public Container<int> {
 public:
  /** Puts a value on top. */
  void push(int value) { values.push_back(value); }

  /** Returns the top value. */
  const int& top() const;

  /** The values. */
  std::vector<int> values;
};

namespace shapes {
/**
 * Computes the area.
 * @param r the radius
 */
template <typename T>
T area(T r) { return 3 * r * r; }
}

/** @brief Empties the stack. */
void Stack::clear() { values.clear(); }
"""
EXPECTED = {
    "cpp": (
        CPP,
        [
            ("Stack.push", "Puts a value on top.", ""),
            ("Stack.top", "Returns the top value.", ""),
            ("shapes.area", "Computes the area.", ""),
            ("Stack.clear", "Empties the stack.", ""),
        ],
    ),
    "python": (
        PYTHON,
        [
            ("Shelf.width", "The width of the shelf, in centimetres.", "Furniture"),
            ("Shelf.load", "Load the books\\shelves.", "Furniture"),
            ("outer", "Keep the outermost.", ""),
            ("inner", "Keep what is inside.", ""),
        ],
    ),
    "javascript": (
        JAVASCRIPT,
        [
            ("hello", "Says hello to somebody.", ""),
            ("add", "Adds two numbers", ""),
            ("Cart.put", "Puts an item into the cart.", "Store"),
            ("Cart.empty", "Empties the cart at once.", "Store"),
            ("find", "Looks the user up.", ""),
            ("Screen.draw", "Draws the next frame.", ""),
            ("newest", "Fetches the newest entries.", ""),
        ],
    ),
    "typescript": (
        TYPESCRIPT,
        [
            ("text", "Turns a value into text.", ""),
            ("Parser.next", "Reads the next token.", "Reader Source Sink"),
            ("Parser.skip", "Skips white space.", "Reader Source Sink"),
            ("Parser.peek", "Peeks at the next token.", "Reader Source Sink"),
            ("Source.open", "Opens the source again.", ""),
        ],
    ),
    "java": (
        JAVA,
        [
            ("Box.Box", "Makes an empty box.", "Shape Comparable Closeable"),
            ("Box.close", "Closes the lid.", "Shape Comparable Closeable"),
            ("Box.Lid.open", "Opens the lid a little.", ""),
        ],
    ),
    "go": (
        GO,
        [
            ("Shelf.Load", "Load puts the books on the shelf.", ""),
            ("Sort", "Sort sorts the books.", ""),
            ("Reader.Read", "Read reads up to n bytes.", ""),
        ],
    ),
    "ruby": (
        RUBY,
        [
            ("Library.Shelf.load", "Loads the books in order.", "Base"),
            ("Library.Shelf.find", "Finds a book by its title.", "Base"),
            ("Library.Shelf.count", "Tells how many there are.", "Base"),
            ("Library.Shelf.sort", "Sorts all of the books.", "Base"),
        ],
    ),
    "php": (
        PHP,
        [
            ("add", "Adds two prices.", ""),
            ("Cart.put", "Puts an item into the cart.", "Store Countable Sink"),
            ("Lists.all", "Lists what is in the cart.", ""),
        ],
    ),
}


@pytest.mark.parametrize("language", EXPECTED)
@pytest.mark.parametrize("newline", [b"\n", b"\r\n"])
def test_finds_documented_functions_in_order(language, newline):
    code, expected = EXPECTED[language]
    dropped = Counter()
    found = list(extract(code.replace(b"\n", newline), language, dropped))
    assert [(c.function, c.summary, c.overrides) for c in found] == expected
    assert {c.language for c in found} == {language}
    assert not dropped


def test_every_suffix_belongs_to_a_language():
    assert set(LANGUAGE_OF_SUFFIX.values()) == set(EXPECTED)
    with pytest.raises(KeyError):
        list(extract(b"", "cobol", Counter()))


def test_functions_around_a_syntax_error_are_found():
    code = b'def broken():\n    x = = 3\n\ndef whole():\n    """Stands its ground."""\n'
    assert [c.summary for c in extract(code, "python", Counter())] == ["Stands its ground."]


def test_jsx_in_typescript_is_parsed():
    code = (
        b"/** Shows the list of names. */\nexport const List = (p: P) => <ul className='a'>{p.names}</ul>;\n"
    )
    assert [c.function for c in extract(code, "typescript", Counter())] == ["List"]


def test_invalid_utf8_is_replaced():
    code = 'def greet():\n    """Says gr\xfc\xdfe to all of them."""\n'.encode("latin-1")
    assert [c.summary for c in extract(code, "python", Counter())] == ["Says gr\ufffd\ufffde to all of them."]
