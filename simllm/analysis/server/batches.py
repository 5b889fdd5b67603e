"""The queue of waiting requests, the thread that scores them in batches, and figures about both."""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field

import prometheus_client as prometheus

import simllm
from simllm.errors import OptionError
from simllm.io import tables
from simllm.metric import SimLLM
from simllm.metrics.interface import Example
from simllm.scoring.embedding import between_batches
from simllm.scoring.scores import Scores


@dataclass(frozen=True)
class Limits:
    """The limits of a server.

    Attributes:
        max_body: Bytes in a request.
        max_pairs: Pairs in a request.
        max_waiting: Pairs in all waiting requests; more are refused, as are more characters than 16 requests
            of the largest size have.
        timeout: Seconds from the beginning of a request to its answer.
    """

    max_body: int = 4 << 20
    max_pairs: int = 1024
    max_waiting: int = 16_384
    timeout: float = 60

    @property
    def max_characters(self) -> int:
        """Characters in all waiting requests."""
        return 16 * self.max_body

    def __post_init__(self) -> None:
        for name in ("max_body", "max_pairs", "timeout"):
            if not (math.isfinite(value := getattr(self, name)) and value > 0):
                raise OptionError(f"{{{name}}} {value:g}: expected a number above 0")
        if self.max_waiting < self.max_pairs:
            raise OptionError("{max_waiting} must be at least {max_pairs}, which one request may have")


class Figures:
    """Figures that Prometheus reads at `/metrics`."""

    def __init__(self) -> None:
        self.registry = own = prometheus.CollectorRegistry()
        prometheus.ProcessCollector(registry=own)
        self.requests = prometheus.Counter(
            "simllm_requests", "Answered requests", ["path", "status"], registry=own
        )
        self.seconds = prometheus.Histogram(
            "simllm_request_seconds", "Seconds from a request to its answer", ["path"], registry=own
        )
        self.pairs = prometheus.Counter("simllm_pairs", "Scored pairs", ["against"], registry=own)
        self.batches = prometheus.Histogram(
            "simllm_batch_pairs", "Pairs scored together", buckets=[4**k for k in range(8)], registry=own
        )
        self.batch_seconds = prometheus.Histogram(
            "simllm_batch_seconds", "Seconds of scoring a batch", registry=own
        )
        self.waiting = prometheus.Gauge("simllm_waiting_pairs", "Pairs that wait for scoring", registry=own)
        self.model = prometheus.Info("simllm_model", "The model that scores", registry=own)


class BusyError(Exception):
    """Error for a request that the server cannot take now; the client may try again after some seconds."""

    def __init__(self, message: str, seconds: int = 1) -> None:
        super().__init__(message)
        self.seconds = seconds


class _UnwantedError(Exception):
    """Error that ends the scoring of requests for which nobody waits any more."""


@dataclass(frozen=True)
class _Job:
    """A request; its result can be cancelled until it is there."""

    examples: Sequence[Example]
    against: str
    characters: int
    result: Future[Scores] = field(default_factory=Future)


def _count_characters(examples: Sequence[Example]) -> int:
    texts = ((e.candidate, e.reference, e.source, e.language) for e in examples)
    return sum(len(text) for four in texts for text in four if text)


class Batcher:
    """The queue of waiting requests, and the thread that loads the metric and scores them.

    Attributes:
        metric: The metric; None until it is loaded.
        failure: Why the metric could not be loaded.
        stopping: Whether the server is about to end; it still answers.
        last_bodies: When the last bodies must have arrived, in the time of the event loop, if it is stopping.
        bodies: The time limits of the bodies that are arriving.
    """

    def __init__(self, load: Callable[[], SimLLM], limits: Limits) -> None:
        self.limits, self.measured = limits, Figures()
        self.metric: SimLLM | None = None
        self.failure: Exception | None = None
        self.stopping = False
        self.last_bodies = math.inf
        self.bodies = set[asyncio.Timeout]()
        self._load = load
        self._queue = deque[_Job]()
        self._waiting = self._characters = 0  # pairs and characters in the queue
        self._speed = 100.0  # pairs a second, at first a guess
        self._ended = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="simllm-scoring", daemon=True)

    def start(self, loaded: Callable[[], None]) -> None:
        """Start the thread, which calls `loaded` when the metric is ready or cannot be loaded."""
        self._loaded = loaded
        self._thread.start()

    def end(self, seconds: float | None = None) -> None:
        """Score what waits, and end the thread; after some seconds, leave it alone."""
        with self._changed:
            self._ended = True
            self._changed.notify()
        self._thread.join(seconds)

    def submit(self, examples: Sequence[Example], against: str) -> Future[Scores]:
        """Add a request to the queue; cancel its result if nobody waits for it any more."""
        if self.metric is None:
            raise BusyError("the model is being loaded")
        job = _Job(examples, against, _count_characters(examples))
        with self._changed:
            limits, found = self.limits, ""
            if self._waiting + len(examples) > limits.max_waiting:
                found = tables.format_count(self._waiting, "pair")
            elif self._characters + job.characters > limits.max_characters:
                found = tables.format_count(self._characters, "character")
            if found:
                seconds = math.ceil(min(60, self._waiting / self._speed))
                raise BusyError(f"{found} are waiting already", seconds)
            self._queue.append(job)
            self._count(job, 1)
            self._changed.notify()
        return job.result

    def _count(self, job: _Job, sign: int) -> None:
        self._waiting += sign * len(job.examples)
        self._characters += sign * job.characters
        self.measured.waiting.set(self._waiting)

    def _run(self) -> None:
        try:
            metric = self._load()
            # The first pairs are slow: operators are prepared for the machine.
            metric.score_groups([[Example("adds two lists", "combines 2 arrays", "a + b")]], "both")
            self.measured.model.info({"signature": metric.signature, "version": simllm.__version__})
            self.metric = metric
        except Exception as error:
            self.failure = error
            return
        finally:
            self._loaded()
        # Larger batches are not faster: these texts fill several batches of the encoder.
        together = metric.engine.batch_tokens // 4
        while jobs := self._take(together):
            self._score(metric, jobs)

    def _take(self, together: int) -> list[_Job]:
        """Wait for requests, and take those that are scored together; none at the end."""
        with self._changed:
            while True:
                self._changed.wait_for(lambda: self._queue or self._ended)
                taken, left, pairs = list[_Job](), list[_Job](), 0
                while self._queue and pairs < together:
                    job = self._queue.popleft()
                    is_like = not taken or job.against == taken[0].against
                    if taken and not (is_like and pairs + len(job.examples) <= together):
                        left.append(job)
                        continue
                    self._count(job, -1)
                    if not job.result.cancelled():
                        taken.append(job)
                        pairs += len(job.examples)
                self._queue.extendleft(reversed(left))
                if taken or (self._ended and not self._queue):
                    return taken

    def _score(self, metric: SimLLM, jobs: Sequence[_Job]) -> None:
        started = time.perf_counter()
        against, pairs = jobs[0].against, sum(len(job.examples) for job in jobs)

        def check() -> None:
            if all(job.result.cancelled() for job in jobs):
                raise _UnwantedError

        between_batches.set(check)
        try:
            check()
            results = metric.score_groups([job.examples for job in jobs], against)
        except _UnwantedError:
            return
        except Exception as error:
            if len(jobs) > 1:  # the others must not fail with one of them
                for job in jobs:
                    self._score(metric, [job])
            elif jobs[0].result.set_running_or_notify_cancel():
                jobs[0].result.set_exception(error)
            return
        for job, scores in zip(jobs, results, strict=True):
            if job.result.set_running_or_notify_cancel():  # from here on, it cannot be cancelled
                job.result.set_result(scores)
        seconds = time.perf_counter() - started
        self._speed += 0.2 * (pairs / seconds - self._speed)
        self.measured.pairs.labels(against).inc(pairs)
        self.measured.batches.observe(pairs)
        self.measured.batch_seconds.observe(seconds)
