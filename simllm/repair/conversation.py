"""A conversation in which a model makes an attempt at an item."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from simllm.execution.messages import SandboxError
from simllm.llm.endpoint import LostReplyError
from simllm.llm.model import Message
from simllm.llm.records import Slot
from simllm.llm.reply import Reply
from simllm.llm.session import Question
from simllm.repair.items import RepairItem
from simllm.repair.judges import Judged, ReplyJudge
from simllm.repair.results import OVERFLOW, REFUSED, AttemptResult, RoundResult
from simllm.repair.strategies import Feedback, Prompts, Round, kind_of_prompt, round_messages

Ask = Callable[[Question], Reply]


@dataclass(frozen=True)
class Conversation:
    """Runner of attempts, which lasts for a whole run."""

    rounds: Sequence[Round]
    prompts: Prompts
    ask: Ask
    judge: ReplyJudge

    def hold(self, item: RepairItem, attempt: int) -> AttemptResult:
        """Make one attempt at an item.

        The result is open if a reply did not arrive or the sandbox failed. `InputError` is left to the
        caller, because it ends the whole run: the endpoint refuses all requests, or a template or file is
        wrong.
        """
        results: list[RoundResult] = []
        skipped: list[int] = []
        try:
            self._hold(item, attempt, results, skipped)
        except (LostReplyError, SandboxError) as error:
            return AttemptResult(item.id, attempt, tuple(results), tuple(skipped), str(error))
        return AttemptResult(item.id, attempt, tuple(results), tuple(skipped))

    def _hold(self, item: RepairItem, attempt: int, results: list[RoundResult], skipped: list[int]) -> None:
        """Run the rounds of one attempt, and append to `results` and `skipped` (numbers of rounds)."""
        history: list[Message] = []
        last: Judged | None = None
        for number, round_ in enumerate(self.rounds, 1):
            failed = bool(results) and results[-1].reply is None
            if round_.keeps_history and failed:
                continue  # the conversation would only become longer, and has what was refused
            feedback = self._feedback(item, round_, last)
            messages = round_messages(self.prompts, round_, item, feedback, is_first=not results)
            if messages is None:
                skipped.append(number)
                continue
            history = [*(history if round_.keeps_history else ()), *messages]
            reply = self.ask(Question(history, Slot(item.id, attempt, number)))
            if reply.text is None:
                last = Judged(None, False, OVERFLOW if reply.is_overflow else REFUSED)
            else:
                last = self.judge.judge_reply(item, reply.text)
                history = [*history, {"role": "assistant", "content": reply.text}]
            results.append(_result(number, kind_of_prompt(round_, item, feedback), messages, reply, last))
            if last.accepted:
                return

    def _feedback(self, item: RepairItem, round_: Round, last: Judged | None) -> Feedback:
        """Return the feedback for a round; `last` is the judgement of the last reply, None before the first
        reply.
        """
        # A new conversation shows the incorrect program, not the model's reply. Only rounds that need the
        # failed tests wait for them.
        if not (round_.keeps_history and last):
            if "tests" not in round_.adds:
                return Feedback()
            return self.judge.feedback(item, self.judge.judge_code(item), round_.shows_output)
        feedback = self.judge.feedback(item, last, round_.shows_output)
        if not round_.shows_output:
            return feedback
        original = self.judge.feedback(item, self.judge.judge_code(item), True)
        return replace(feedback, original=original.failed)


def _result(number: int, kind: str, messages: Sequence[Message], reply: Reply, judged: Judged) -> RoundResult:
    return RoundResult(
        round=number,
        kind=kind,
        messages=tuple(messages),
        reply=reply.text,
        code=judged.code,
        verdict=judged.verdict,
        accepted=judged.accepted,
        tests=judged.tests,
        compile_log=judged.compile_log,
        score=judged.score,
        prompt_tokens=reply.prompt_tokens,
        completion_tokens=reply.completion_tokens,
        is_ambiguous=judged.is_ambiguous,
        is_cut=reply.finish_reason == "length",
    )
