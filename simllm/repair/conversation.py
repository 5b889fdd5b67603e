"""A conversation in which a model tries to repair a program, in a limited number of rounds (requests)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from simllm.execution.sandbox_outcome import SandboxError
from simllm.llm.endpoint import ChatReply, LostReplyError, Message
from simllm.repair.attempt_results import OVERFLOW, AttemptResult, RoundResult
from simllm.repair.prompt_templates import Prompts
from simllm.repair.repair_items import RepairItem
from simllm.repair.reply_judge_interface import Judged, ReplyJudge
from simllm.repair.round_messages import Feedback, round_messages
from simllm.repair.strategy_loading import Round

# Takes the messages, the id of the item, and the numbers of the attempt and the round.
Ask = Callable[[Sequence[Message], str, int, int], ChatReply]


@dataclass(frozen=True)
class Conversation:
    """Runner of conversations in which a model tries to repair a program or to summarize code.

    Such a program, or such code, is called an item. Each call of `hold` lets the model make one attempt at
    one item. An attempt is a series of rounds. In each round, the model gets messages and sends one reply.
    The attempt ends early if a reply is accepted.

    Attributes:
        rounds: The settings of each round of an attempt, in order.
        prompts: The templates of the messages.
        ask: The function that sends messages to the model and returns its reply.
        judge: The object that decides whether a reply is accepted.
    """

    rounds: Sequence[Round]
    prompts: Prompts
    ask: Ask
    judge: ReplyJudge

    def hold(self, item: RepairItem, attempt: int) -> AttemptResult:
        """Let the model make one attempt at an item, in one or more rounds.

        Args:
            item: The incorrect program, or the code to summarize.
            attempt: The number of the attempt, from 1.

        Returns:
            The result of the attempt. The attempt is open (not finished) if a reply of the model did not
            arrive, or if the sandbox, in which programs run, failed.

        Raises:
            InputError: The endpoint refuses all requests, a template is wrong, or a file cannot be written.
        """
        results: list[RoundResult] = []
        skipped: list[int] = []
        try:
            self._hold(item, attempt, results, skipped)
        except (LostReplyError, SandboxError) as error:
            return AttemptResult(item.id, attempt, tuple(results), tuple(skipped), str(error))
        return AttemptResult(item.id, attempt, tuple(results), tuple(skipped))

    def _hold(self, item: RepairItem, attempt: int, results: list[RoundResult], skipped: list[int]) -> None:
        """Run the rounds of one attempt, until a reply is accepted or no round is left.

        In a round, the model gets messages and sends one reply. Some rounds begin a new conversation. Other
        rounds continue the conversation: they send all earlier messages and replies again, followed by the
        new messages. If a request is too long for the model, the conversation cannot be continued. The
        attempt then ends, unless the next round begins a new conversation.

        Args:
            item: The incorrect program, or the code to summarize.
            attempt: The number of the attempt, from 1.
            results: A list to which the result of each round is appended.
            skipped: A list to which the number of each skipped round is appended. A round is skipped if it
                has nothing new to tell the model.
        """
        history: list[Message] = []
        last: Judged | None = None
        for number, round_ in enumerate(self.rounds, 1):
            overflowed = bool(results) and results[-1].verdict == OVERFLOW
            if round_.keeps_history and overflowed:
                return  # the conversation would only become longer
            feedback = self._feedback(item, round_, last)
            messages = round_messages(self.prompts, round_, item, feedback, is_first=not results)
            if messages is None:
                skipped.append(number)
                continue
            history = [*(history if round_.keeps_history else ()), *messages]
            reply = self.ask(history, item.id, attempt, number)
            if reply.text is None:
                last = Judged(None, False, OVERFLOW)
            else:
                last = self.judge.judge_reply(item, reply.text)
                history = [*history, {"role": "assistant", "content": reply.text}]
            results.append(_result(number, messages, reply, last))
            if last.accepted:
                return

    def _feedback(self, item: RepairItem, round_: Round, last: Judged | None) -> Feedback:
        """Return the feedback that the model gets in a round, such as the failed tests of a program.

        - A round that continues a conversation in which the model has replied: the feedback is about the
          model's last reply.
        - Any other round whose settings ask for failed tests ("tests" in `round_.adds`): the feedback is
          about the original incorrect program.
        - All other rounds: the feedback is empty.

        Args:
            item: The incorrect program, or the code to summarize.
            round_: The round: one request to the model.
            last: The verdict or score of the model's last reply; None before the first reply.
        """
        if round_.keeps_history and last:
            return self.judge.feedback(item, last)
        if "tests" in round_.adds:
            return self.judge.feedback(item, self.judge.judge_code(item))
        return Feedback()


def _result(number: int, messages: Sequence[Message], reply: ChatReply, judged: Judged) -> RoundResult:
    return RoundResult(
        round=number,
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
    )
