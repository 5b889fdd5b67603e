"""The addresses of the server: what requests and answers hold, and what is said about a wrong request."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import prometheus_client as prometheus
from fastapi import FastAPI, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, Response
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from starlette.exceptions import HTTPException as AnyHTTPException

import simllm
from simllm.analysis.reward import completion_text, text_after
from simllm.analysis.server.batches import Batcher, BusyError
from simllm.analysis.server.transport import Gate
from simllm.errors import InputError
from simllm.io import html_page, tables
from simllm.metrics.interface import Example
from simllm.scoring.scores import Scores, about_percentiles
from simllm.scoring.table import ScoreTable
from simllm.text_cleaning import encodable

_PAGE = Path(__file__).with_name("page.html")


def _as_text(value: Any) -> Any:
    return encodable(value) if isinstance(value, str) else value


def _as_completion(value: Any) -> Any:
    return encodable(completion_text(value))


Text = Annotated[str, BeforeValidator(_as_text)]
Completion = Annotated[
    str, BeforeValidator(_as_completion, json_schema_input_type=str | list[dict[str, Any]])
]
# Without fail_fast, a wrong body of many items would make an error for each of them.
Texts = Annotated[list[Text], Field(fail_fast=True)]
_MOST_KEYS = 16  # more than any object here has


class _Strict(BaseModel):
    """An object without unknown keys, each of which would make an error."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _has_few_keys(cls, value: Any) -> Any:
        if isinstance(value, dict) and len(value) > _MOST_KEYS:
            raise ValueError(f"expected at most {_MOST_KEYS} keys, not {len(value):,}")
        return value


class Pair(_Strict):
    """A candidate and what it is scored against, as in the JSON lines that the command reads."""

    candidate: Text
    reference: Text | None = None
    code: Text | None = Field(None, description="The code that the candidate describes.")
    language: Text | None = Field(None, description="Of the code, such as java.")


class ScoreRequest(_Strict):
    """Pairs to score."""

    pairs: list[Pair] = Field(min_length=1, fail_fast=True)
    against: Literal["reference", "code", "both"] = "reference"
    scale: Literal["raw", "percentile", "same", "graded"] = Field("raw", description="Of scores and mean.")


class Row(BaseModel):
    """The scores of a pair."""

    score: float
    same: float | None = Field(None, description="Probability that both texts have the same meaning.")
    fits: float | None = Field(None, description="Probability that the candidate fits the code.")


class ScoreReply(BaseModel):
    """The scores of the pairs, in their order, and facts about all of them."""

    rows: list[Row]
    pairs: int
    mean: float
    changed: int | None = Field(None, description="Pairs whose texts are similar but may differ in meaning.")
    empty: int = Field(description="Pairs with a text that is empty after cleaning.")
    truncated: int = Field(description="Texts that are longer than the model reads.")
    deduplicated: int = Field(description="Texts that are equal to an earlier one.")
    signature: str = Field(description="Names everything that can change a score.")
    warnings: list[str] = Field([], description="What changes how the scores are read.")


class RewardRequest(BaseModel):
    """Completions and their references, or what OpenRLHF sends: query, prompts and labels."""

    completions: list[Completion] | None = Field(
        None, fail_fast=True, description="Texts, or lists of chat messages."
    )
    references: Texts | None = None
    query: Texts | None = Field(None, description="Prompts, each followed by its completion.")
    prompts: Texts | None = None
    labels: Texts | None = Field(None, description="The references.")

    def examples(self) -> list[Example]:
        """Return completions with their references; InputError if they do not belong together."""
        completions, references = self.completions, self.references
        if completions is None and references is None:
            if self.query is None or self.prompts is None or self.labels is None:
                raise InputError(
                    "expected completions and references, or query, prompts and labels as OpenRLHF sends them"
                )
            _check_lengths(query=self.query, prompts=self.prompts, labels=self.labels)
            completions, references = [], self.labels
            for i, (query, prompt) in enumerate(zip(self.query, self.prompts, strict=True)):
                try:
                    completions.append(text_after(prompt, query))
                except InputError as error:
                    raise InputError(f"query[{i}]: {error}") from None
        elif completions is None or references is None:
            raise InputError("completions and references go together")
        _check_lengths(completions=completions, references=references)
        return [Example(*pair) for pair in zip(completions, references, strict=True)]


def _check_lengths(**lists: Sequence[str]) -> None:
    """Raise InputError if lists are empty or have different lengths."""
    counts = {name: len(values) for name, values in lists.items()}
    if len(set(counts.values())) > 1 or not all(counts.values()):
        shown = ", ".join(f"{count} {name}" for name, count in counts.items())
        raise InputError(f"{shown}: expected as many of each, at least one")


class RewardReply(BaseModel):
    """The rewards, in the order of the request."""

    rewards: list[float]
    scores: list[float] = Field(description="The rewards again, which OpenRLHF filters by.")
    signature: str
    warnings: list[str] = []


class Error(BaseModel):
    """Answer to a request that is refused."""

    error: str


def _examples(request: ScoreRequest) -> list[Example]:
    """Return the pairs of a request; InputError if one lacks what it is scored against."""
    needed = {"reference": ("reference",), "code": ("code",), "both": ("reference", "code")}[request.against]
    for i, pair in enumerate(request.pairs):
        for name in needed:
            if getattr(pair, name) is None:
                raise InputError(f'pairs[{i}]: expected a text under "{name}"')
    return [Example(pair.candidate, pair.reference, pair.code, pair.language) for pair in request.pairs]


def score_reply(scores: Scores, scale: str) -> dict[str, Any]:
    """Return the JSON object that `simllm score -f json` writes, without the texts."""
    table = ScoreTable(scale, "json", False, scores)
    scores = replace(scores, warnings=(*scores.warnings, *about_percentiles(scores, scale)))
    columns = {"score": scores.on(scale)}
    if table.with_same:
        columns["same"] = scores.on("same")
    if scores.fits is not None:
        columns["fits"] = scores.fits
    rows = zip(*(values.tolist() for values in columns.values()), strict=True)
    return {"rows": [dict(zip(columns, row, strict=True)) for row in rows], **table.summary(scores)}


_REASONS = {"missing": "missing", "extra_forbidden": "unknown key", "string_type": "expected a text"}
_REASONS |= {"list_type": "expected a list", "model_attributes_type": "expected an object"}


def about_invalid(error: RequestValidationError) -> str:
    """Return one line about a body that does not fit: the place in it, and what was expected."""
    first, *others = error.errors()
    if first["type"] == "json_invalid":
        return f"the body: not JSON ({first['ctx']['error']}: character {first['loc'][-1]})"
    where = ""
    for part in first["loc"][1:]:
        where += f"[{part}]" if isinstance(part, int) else f".{part}" if where else str(part)
    reason = _REASONS.get(first["type"])
    if reason is None:
        said = first["msg"].removeprefix("Value error, ")
        reason = re.sub("^(Input should be|List should have)", "expected", said)
        reason = reason.replace(" after validation", "")
    more = f"; and {tables.format_count(len(others), 'more problem')}" if others else ""
    return tables.on_one_line(f"{where or 'the body'}: {reason}{more}")


class Service:
    """The addresses of the server, as a FastAPI application in `app`."""

    def __init__(self, batcher: Batcher, token: str | None = None, host: str = "127.0.0.1") -> None:
        """Make the application; without a token, it answers to `host` and the names of this machine alone."""
        self.batcher, self.limits = batcher, batcher.limits
        limits = self.limits
        self.app = app = FastAPI(
            title="simllm",
            version=simllm.__version__,
            description=f"At most {limits.max_pairs:,} pairs and {limits.max_body:,} bytes in a request.",
            docs_url=None,  # the pages of FastAPI load scripts from other servers
            redoc_url=None,
            redirect_slashes=False,  # behind a proxy, an address with a slash would lead elsewhere
        )
        codes = (400, 401, 408, 413, 415, 422, 503)
        refusals: dict[int | str, dict[str, Any]] = {code: {"model": Error} for code in codes}
        app.add_api_route(
            "/score", self.score, methods=["POST"], response_model=ScoreReply, responses=refusals
        )
        app.add_api_route(
            "/reward", self.reward, methods=["POST"], response_model=RewardReply, responses=refusals
        )
        app.add_api_route("/health", self.health, methods=["GET"])
        app.add_api_route("/metrics", self.metrics, methods=["GET"], response_class=Response)
        app.add_api_route("/docs", self.docs, methods=["GET"], include_in_schema=False)
        app.add_exception_handler(RequestValidationError, _refuse_invalid)
        app.add_exception_handler(AnyHTTPException, _refuse)
        app.add_exception_handler(Exception, _fail)
        paths = {route.path for route in app.routes if hasattr(route, "path")}
        app.add_middleware(Gate, batcher=batcher, token=token, host=host, paths=paths)

    async def score(self, body: ScoreRequest, request: Request) -> JSONResponse:
        """Score pairs, as the command simllm score does."""
        with _refusing():
            scores = await self._scores(request, _examples(body), body.against)
            return JSONResponse(tables.finite(score_reply(scores, body.scale)))

    async def reward(self, body: RewardRequest, request: Request) -> JSONResponse:
        """Score completions against references, as rewards for reinforcement learning."""
        with _refusing():
            scores = await self._scores(request, body.examples(), "reference")
            rewards, found = scores.values.tolist(), list(scores.warnings)
            reply = {"rewards": rewards, "scores": rewards, "signature": scores.signature, "warnings": found}
            return JSONResponse(reply)

    async def health(self) -> JSONResponse:
        """Tell whether the server takes requests: 200 if so, otherwise 503."""
        batcher = self.batcher
        status = "stopping" if batcher.stopping else "ready" if batcher.metric else "loading"
        found = {"status": status, "signature": batcher.metric and batcher.metric.signature}
        return JSONResponse(found, 200 if status == "ready" else 503)

    async def metrics(self) -> Response:
        """Return figures about requests and batches for Prometheus."""
        content = prometheus.generate_latest(self.batcher.measured.registry)
        return Response(content, media_type=prometheus.CONTENT_TYPE_LATEST)

    async def docs(self) -> HTMLResponse:
        """Return a page about these addresses, which needs no other server."""
        api = self.app.openapi()
        schemas = api["components"]["schemas"]

        def named(reference: dict[str, str]) -> dict[str, Any]:
            return schemas[reference["$ref"].rpartition("/")[2]]

        return HTMLResponse(html_page.render(_PAGE, api=api, named=named))

    async def _scores(self, request: Request, examples: Sequence[Example], against: str) -> Scores:
        """Wait for the scores, as long as the client is there and in time."""
        limit = self.limits.max_pairs
        if len(examples) > limit:
            count = tables.format_count(len(examples), "pair")
            raise HTTPException(413, f"{count}; expected at most {limit:,} in a request")
        result = asyncio.wrap_future(self.batcher.submit(examples, against))
        gone = asyncio.ensure_future(request.receive())
        left = request.scope["simllm.deadline"] - asyncio.get_running_loop().time()
        both: set[asyncio.Future[Any]] = {result, gone}
        try:
            await asyncio.wait(both, timeout=left, return_when=asyncio.FIRST_COMPLETED)
            if result.done():
                return result.result()
        finally:
            gone.cancel()
            result.cancel()
        if gone.done() and not gone.cancelled():
            raise HTTPException(499, "the client went away")
        raise BusyError(f"not scored within {self.limits.timeout:g} seconds", 10)


@contextlib.contextmanager
def _refusing() -> Iterator[None]:
    """Turn errors of a `with` block that the client can mend into answers."""
    try:
        yield
    except InputError as error:
        raise HTTPException(422, tables.on_one_line(str(error))) from None
    except BusyError as error:
        raise HTTPException(503, str(error), {"Retry-After": str(error.seconds)}) from None


async def _refuse_invalid(_: Request, error: Any) -> JSONResponse:
    is_json = error.errors()[0]["type"] != "json_invalid"
    return JSONResponse({"error": about_invalid(error)}, 422 if is_json else 400)


async def _refuse(request: Request, error: Any) -> JSONResponse:
    message = error.detail
    if error.status_code in (404, 405):
        message = f"{request.method} {request.url.path}: no such address; GET /docs lists them"
    elif error.status_code == 400:  # FastAPI does not say more
        message = "the body: expected JSON in UTF-8, not nested deeply"
    return JSONResponse({"error": message}, error.status_code, error.headers)


async def _fail(*_: Any) -> JSONResponse:
    return JSONResponse({"error": "internal error, which the log of the server describes"}, 500)
