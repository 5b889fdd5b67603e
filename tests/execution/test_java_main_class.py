"""The class of a compiled Java program that has the method `main`."""

from simllm.execution.toolchains import main_class


def test_main_class():
    with_main = b"..\x01\x00\x04main\x01\x00\x16([Ljava/lang/String;)V.."
    assert main_class("Main.java", {"A.class": b"", "B.class": with_main}) == "B"
    assert main_class("C.java", {"a/b/B.class": with_main, "a/b/C.class": with_main}) == "a.b.C"
    assert main_class("C.java", {"A.class": b""}) == "C"
