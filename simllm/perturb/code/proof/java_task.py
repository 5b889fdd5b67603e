"""A Java function and its variant (a rewritten version), with the arguments with which both are called."""

from __future__ import annotations

from dataclasses import dataclass

from simllm.perturb.code.proof.java_inputs import JavaSignature
from simllm.perturb.code.proof.proof_case import Task


@dataclass(frozen=True)
class JavaTask:
    """A Java function and its variant (a rewritten version), with the inputs on which both are run.

    Attributes:
        task: The function, its variant and the mutants (deliberately incorrect variants). It also has the
            inputs as text for display.
        signature: The signature of the original function.
        inputs: For each input, a text and a bool. The text has the arguments, such as "int:7 null", for the
            Java program that calls the functions. The bool is True if an argument is a large integer.
    """

    task: Task
    signature: JavaSignature
    inputs: list[tuple[str, bool]]

    @property
    def class_name(self) -> str:
        """The name of the Java class that is written around the function, so that it can be compiled.

        The class around a constructor must have the constructor's name. The class around any other function
        is named `Case`.
        """
        return self.signature.name if self.signature.is_constructor else "Case"
