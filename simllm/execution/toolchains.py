"""Compilers and interpreters of the judge's languages: their commands, and the programs that they compile."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field as dataclass_field

from simllm.errors import InputError
from simllm.execution.limits import COMPILE_LIMITS, Limits
from simllm.execution.messages import SEARCH_PATH, Outcome
from simllm.execution.sandbox import Sandbox

# A comment, a text block, a string or a character: none of them declares a class. One without an end goes on
# to the end of the text or line; the time would be quadratic if the search began again inside it.
_NOT_CODE = re.compile(
    r'//[^\n]*|/\*.*?(?:\*/|\Z)|"""(?:\\.|[^\\])*?(?:"""|\Z)|"(?:\\.|[^"\\\n])*"?|\'(?:\\.|[^\'\\\n])*\'?',
    re.DOTALL,
)
_TOKEN = re.compile(r"@\s*+[\w$.]+|non-sealed|[\w$]+|\S")
_BLANKS = re.compile(r"\s+")
_NAME = re.compile(r"[^\W\d][\w$]*")
_LONGEST_NAME = 255 - len(".class")  # bytes, of Linux; javac refuses longer ones
_MODIFIERS = ("abstract", "final", "strictfp", "sealed", "non-sealed")
_TYPES = ("class", "interface", "@interface", "enum", "record")


def file_name(source: str) -> str:
    """Return the file name that javac requires: that of the public class, or Main.java if there is none."""
    is_public, before = False, ""
    tokens = iter(_TOKEN.findall(_outermost(_NOT_CODE.sub(" ", source))))
    for token in tokens:
        token = _BLANKS.sub("", token)
        if token in _TYPES:
            name = next(tokens, "")
            if is_public and _NAME.fullmatch(name) and len(name.encode()) <= _LONGEST_NAME:
                return f"{name}.java"
            is_public = name == "public"
        else:  # the brace stands for the values of an annotation
            belongs = (
                token in _MODIFIERS or token.startswith("@") or (token == "{" and before.startswith("@"))
            )
            is_public = token == "public" or (is_public and belongs)
        before = token
    return "Main.java"


def _outermost(code: str) -> str:
    """Replace each outermost pair of braces or parentheses and what is inside by a single `{`.

    `@X(1) class A { int x; } class B {}` becomes `@X{ class A { class B {`.
    """
    parts, depth = [], 0
    for part in re.split(r"([{}()])", code):
        if part in ("{", "}", "(", ")"):
            depth += 1 if part in ("{", "(") else -1
        elif depth == 0:
            parts.append(part)
    return "{".join(parts)


# The name and the type of `main` as they stand in a class file.
_MAIN = (b"\x01\x00\x04main", b"\x01\x00\x16([Ljava/lang/String;)V")


def main_class(source_name: str, classes: Mapping[str, bytes]) -> str:
    """Return the class with a method `main`, such as "pack.Main"; if several have one, the source file's.

    `classes` maps relative paths to class files. If no class has `main`, return the name of the source file
    without ".java".
    """
    own = source_name.removesuffix(".java")
    names = [
        path.removesuffix(".class").replace("/", ".")
        for path, content in classes.items()
        if all(part in content for part in _MAIN)
    ]
    return next((name for name in names if name.rpartition(".")[2] == own), names[0] if names else own)


_CHECK_PYTHON = "import sys; compile(open(sys.argv[1], 'rb').read(), sys.argv[1], 'exec', dont_inherit=True)"
_JAVA = ("-XX:+UseSerialGC", "-XX:-UsePerfData", "-Xshare:auto")


@dataclass(frozen=True)
class Toolchain:
    """The commands that compile and run programs in a programming language.

    Attributes:
        source: The name of the source file.
        compile: The command that compiles; `{source}` stands for the source file.
        keep: Patterns, as in `fnmatch`, for the compiled files that the run needs.
        taken: Patterns, in lower case, for names that no input or output file may have, because the program
            or its compiler use such files, or a run could load them as code.
        run: The command that runs the program. `{memory}` stands for the memory limit in MiB, `{main}` for
            the Java class with `main`.
        version: The command that prints the version.
        packages: The Debian package of each needed program.
        refused: What standard error contains if the program could not allocate memory.
    """

    source: str
    compile: tuple[str, ...]
    keep: tuple[str, ...]
    taken: tuple[str, ...]
    run: tuple[str, ...]
    version: tuple[str, ...]
    packages: Mapping[str, str]
    refused: re.Pattern[bytes]


TOOLCHAINS = {
    "cpp": Toolchain(
        source="main.cpp",
        compile=("g++", "-std=c++17", "-O2", "-o", "program", "{source}"),
        keep=("program",),
        taken=("program", "main.cpp"),
        run=("./program",),
        version=("g++", "--version"),
        packages={"g++": "g++"},
        refused=re.compile(rb"std::bad_alloc"),
    ),
    "python": Toolchain(
        source="main.py",
        # -I ignores the variable of the environment that lifts the limit on digits in runs.
        compile=("python3", "-I", "-S", "-X", "int_max_str_digits=0", "-c", _CHECK_PYTHON, "{source}"),
        keep=("main.py",),
        taken=("*.py", "*.pyc", "*.so", "__pycache__", ".pdbrc"),
        run=("python3", "main.py"),
        version=("python3", "--version"),
        packages={"python3": "python3"},
        refused=re.compile(rb"^MemoryError", re.MULTILINE),
    ),
    "java": Toolchain(
        source="Main.java",
        compile=("javac", *(f"-J{option}" for option in _JAVA), "-J-Xmx768m", "-encoding", "UTF-8",
                 "-proc:none", "-nowarn", "-d", ".", "{source}"),
        keep=("*.class",),
        taken=("*.class", "*.java", "*.jar"),
        run=("java", *_JAVA, "-Xmx{memory}m", "-cp", ".", "{main}"),
        version=("javac", "-version"),
        packages={"javac": "default-jdk-headless", "java": "default-jre-headless"},
        refused=re.compile(rb"java\.lang\.OutOfMemoryError: (?!unable to create)"),
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Program:
    """A compiled program; it cannot be run unless `outcome.succeeded`.

    Attributes:
        files: The contents of the compiled files by relative path.
        outcome: The outcome of the compiler's run.
        main: The Java class with the method `main`; empty for other languages.
        toolchain: The tools of the program's language.
    """

    files: Mapping[str, bytes]
    outcome: Outcome
    main: str
    toolchain: Toolchain = dataclass_field(repr=False)

    def command(self, limits: Limits) -> list[str]:
        """Return the command that runs the program; Java gets the memory limit as an option."""
        words = {"memory": limits.memory, "main": self.main}
        return [word.format(**words) for word in self.toolchain.run]

    @property
    def compile_log(self) -> str:
        """The compiler's messages; a last line names the limit that the compiler exceeded, if any."""
        end = f"the compiler exceeded its limit of {self.outcome.exceeded}\n" if self.outcome.exceeded else ""
        return self.outcome.stderr.decode(errors="replace") + end

    def was_refused_memory(self, outcome: Outcome) -> bool:
        """Return whether a run failed because the program could not allocate memory."""
        return outcome.status != 0 and self.toolchain.refused.search(outcome.stderr) is not None


def find_toolchain(language: str) -> Toolchain:
    """Return the tools of a language (cpp, python or java), which must be installed.

    Raises:
        InputError: The language is not supported, or its tools are not installed.
    """
    toolchain = TOOLCHAINS.get(language)
    if toolchain is None:
        raise InputError(f"language {language!r}: expected one of {', '.join(TOOLCHAINS)}")
    for program, package in toolchain.packages.items():
        if shutil.which(program, path=SEARCH_PATH) is None:
            raise InputError(f"{language}: no {program} in {SEARCH_PATH}: apt-get install {package}")
    return toolchain


def toolchain_version(sandbox: Sandbox, language: str) -> str:
    """Return the first line of what a compiler or interpreter says of its version, such as "Python 3.12.3".

    Raises:
        InputError: The language is not supported, or its tools are not installed or do not run.
    """
    outcome = sandbox.run(find_toolchain(language).version, limits=COMPILE_LIMITS)
    if not outcome.succeeded:
        raise InputError(f"{language}: {_first_line(outcome.stderr)}")
    return _first_line(outcome.stdout)


def _first_line(text: bytes) -> str:
    return text.decode(errors="replace").strip().partition("\n")[0]


def compile_program(sandbox: Sandbox, language: str, code: str) -> Program:
    """Compile a program in the sandbox; for Python, only check its syntax.

    Raises:
        InputError: The language is not supported, or its tools are not installed.
        SandboxError: The sandbox failed.
    """
    toolchain = find_toolchain(language)
    source = file_name(code) if language == "java" else toolchain.source
    command = [word.format(source=source) for word in toolchain.compile]
    files = {source: code.encode("utf-8", "surrogatepass")}
    outcome = sandbox.run(command, files, limits=COMPILE_LIMITS, keep=toolchain.keep)
    main = main_class(source, outcome.files) if language == "java" else ""
    return Program(outcome.files, outcome, main, toolchain)
