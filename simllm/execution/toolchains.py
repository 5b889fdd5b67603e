"""The file name that the Java compiler requires for a source text: the name of its public class."""

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
    """Return the file name that javac requires for a Java source text.

    javac requires that a source file has the name of its public class. For a text without a public class,
    the name is Main.java.
    """
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
    """Remove the text inside braces and parentheses, so that a search finds only the outermost classes.

    Each outermost pair of braces or parentheses, with all text inside, is replaced by a single `{`. For
    example, `@X(1) class A { int x; } class B {}` becomes `@X{ class A { class B {`.
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
    """Choose the class that starts a compiled Java program: a class that has a method `main`.

    If several classes have such a method, the class with the name of the source file is preferred.

    Args:
        source_name: The name of the source file, such as "Main.java".
        classes: The content of each class file by its relative path.

    Returns:
        The name of the class with its package, such as "pack.Main". If no class has `main`, the name of the
        source file without ".java".
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
        compile: The command that compiles the source file; `{source}` stands for its name.
        keep: Patterns, as in `fnmatch`, for the relative paths of the files that are kept after compilation
            to run the program, such as "*.class".
        taken: Patterns, in lower case, for the names of files that the program or its compiler use, or that a
            run could load as code: no input or output file may have such a name.
        run: The command that runs the program. `{memory}` stands for the memory limit in MiB, and `{main}`
            for the Java class that has the method `main`.
        version: The command that prints the version of the compiler or interpreter.
        packages: A dict from the name of each needed program to the Debian package that contains it.
        refused: A regular expression. It matches the messages that a program writes to standard error if it
            cannot allocate memory, such as "MemoryError" in Python.
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
    """A compiled program.

    If `outcome.succeeded` is false, the compilation failed, and the program cannot be run.

    Attributes:
        files: The content of the compiled files by relative path.
        outcome: The outcome of the compiler's run.
        main: The Java class with the method `main`; empty for other languages.
        toolchain: The tools of the program's language.
    """

    files: Mapping[str, bytes]
    outcome: Outcome
    main: str
    toolchain: Toolchain = dataclass_field(repr=False)

    def command(self, limits: Limits) -> list[str]:
        """Return the command that runs the program.

        Args:
            limits: The limits of the run. A Java program gets the memory limit as an option of its command.
                Commands of other languages contain no limits.
        """
        words = {"memory": limits.memory, "main": self.main}
        return [word.format(**words) for word in self.toolchain.run]

    @property
    def compile_log(self) -> str:
        """The messages that the compiler wrote to standard error.

        If the compiler exceeded a limit, such as its time limit, a last line names this limit.
        """
        end = f"the compiler exceeded its limit of {self.outcome.exceeded}\n" if self.outcome.exceeded else ""
        return self.outcome.stderr.decode(errors="replace") + end

    def was_refused_memory(self, outcome: Outcome) -> bool:
        """Return whether a run of the program failed because the program could not allocate memory.

        Args:
            outcome: The outcome of the run.
        """
        return outcome.status != 0 and self.toolchain.refused.search(outcome.stderr) is not None


def find_toolchain(language: str) -> Toolchain:
    """Find the tools of a programming language: check that they are installed, and return their commands.

    Args:
        language: cpp, python or java.

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
    """Ask a language's compiler or interpreter for its version.

    Args:
        sandbox: The sandbox in which the compiler or interpreter is run.
        language: cpp, python or java.

    Returns:
        The first line of the answer, such as "Python 3.12.3".

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

    Args:
        sandbox: The sandbox in which the compiler is run.
        language: cpp, python or java.
        code: The source code. In Java, the public class may have any name.

    Returns:
        The program. If its `outcome.succeeded` is false, it did not compile, and cannot be run.

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
