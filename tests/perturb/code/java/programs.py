"""Helpers that compile and run many Java functions, with one javac process and one java process."""

import subprocess

HARNESS = """package harness;

import java.util.*;
import java.util.concurrent.Callable;

public class Harness {
    public static String show(Object x) {
        return x != null && x.getClass().isArray()
            ? Arrays.deepToString(new Object[]{x}).replaceAll("^\\\\[|\\\\]$", "")
            : String.valueOf(x);
    }

    public static void report(String id, Callable<Object> call, Callable<String> rest) throws Exception {
        String outcome;
        try {
            outcome = show(call.call());
        } catch (Throwable error) {
            outcome = "throws " + error.getClass().getName();
        }
        System.out.println(id + "\\t" + (outcome + rest.call()).replace("\\n", "\\\\n"));
    }

    public static void main(String[] args) throws Exception {
        for (String id : args) {
            Class.forName(id + ".Calls").getMethod("run").invoke(null);
        }
    }
}
"""
CASE = """package {package};
import java.util.*;
import java.util.function.*;

public class Case{interfaces} {{
{members}
{source}
}}
"""


def outcomes(functions, folder):
    """Compile and run functions; return the outcomes of each, or raise with the compiler's messages.

    Args:
        functions: For each id, the fields `source`, `entry`, `args`, and possibly `members` and `observe`.
        folder: An empty folder.
    """
    (folder / "harness").mkdir()
    (folder / "harness" / "Harness.java").write_text(HARNESS)
    files = ["harness/Harness.java"]
    for name, function in functions.items():
        (folder / name).mkdir()
        interfaces = " implements Comparable<Case>" if "compareTo" in function["source"] else ""
        case = CASE.format(
            package=name,
            interfaces=interfaces,
            members=function.get("members") or "",
            source=function["source"],
        )
        (folder / name / "Case.java").write_text(case, newline="")
        calls = "".join(call(name, function, args) for args in function["args"])
        text = f"package {name};\nimport java.util.*;\nimport java.util.function.*;\n"
        text += "import static harness.Harness.show;\n"
        text += f"public class Calls {{ public static void run() throws Exception {{\n{calls}}} }}\n"
        (folder / name / "Calls.java").write_text(text)
        files += [f"{name}/Case.java", f"{name}/Calls.java"]
    subprocess.run(
        ["javac", "-J-XX:TieredStopAtLevel=1", "-nowarn", "-Xlint:none", "-encoding", "UTF-8", *files],
        cwd=folder,
        check=True,
    )
    done = subprocess.run(
        [
            "java",
            "-Dstdout.encoding=UTF-8",
            "-cp",
            ".",
            "harness.Harness",
            *functions,
        ],
        cwd=folder,
        check=True,
        capture_output=True,
        text=True,
    )
    found = {name: [] for name in functions}
    for line in done.stdout.splitlines():
        name, _, outcome = line.partition("\t")
        found[name].append(outcome)
    return found


def call(name, function, args):
    """Return a Java statement that calls a function and reports the outcome of the call."""
    variables = "".join(f"var a{i} = {value}; " for i, value in enumerate(args))
    names = [f"a{i}" for i in range(len(args))]
    rest = "".join(f' + " | " + show({shown})' for shown in [*names, *(function.get("observe") or ())])
    made = f"o.{function['entry']}({', '.join(names)})"
    report = f'harness.Harness.report("{name}", () -> {made}, () -> ""{rest});'
    return f"{{ Case o = new Case(); {variables}{report} }}\n"
