"""The arguments of small distillations, and helpers for tests of teachers."""

import itertools
import json

import pytest


@pytest.fixture(scope="session")
def sources(short_texts, tmp_path_factory):
    """Write a folder with plain texts, pairs, and rated pairs."""
    folder = tmp_path_factory.mktemp("sources")
    texts = short_texts
    (folder / "plain.txt").write_text("".join(f"{text}\n" for text in texts[:200]))
    with (folder / "pairs.jsonl").open("w") as file:
        for i, (a, b) in enumerate(zip(texts[200:230], texts[230:260], strict=True)):
            file.write(json.dumps({"a": a, "b": b, "from": "one" if i % 3 else "other"}) + "\n")
    with (folder / "rated.jsonl").open("w") as file:
        for i, (a, b) in enumerate(itertools.pairwise(texts[-40:])):
            file.write(json.dumps({"reference": a, "candidate": b, "rating": i % 5}) + "\n")
    (folder / "dev.txt").write_text("".join(f"{text}\n" for text in texts[300:400]))
    return folder


@pytest.fixture
def arguments(sources, teachers):
    """Return a function that returns the arguments of a small distillation in a folder."""

    def made(out, *more):
        texts = [
            f"{{source: {sources}/plain.txt, variants: 0.5}}",
            f"{{source: {sources}/pairs.jsonl, fields: [a, b], leave_out: {{from: [other]}}}}",
        ]
        return [
            "configs/distill.yaml",
            f"out={out}",
            f"texts=[{', '.join(texts)}]",
            f"exclude=[{sources}/rated.jsonl]",
            f"teachers=[{teachers['bert']}, {teachers['mpnet']}]",
            "model={vocab_size: 300, hidden_size: 32, num_hidden_layers: 2, num_attention_heads: 4, "
            "intermediate_size: 48, max_position_embeddings: 66}",
            f"start={{teacher: {teachers['bert']}, layers: [0, 2]}}",
            f"dev=[{sources}/rated.jsonl]",
            *("groups=24", "chunk_tokens=300", "updates=20", "warmup_updates=2", "evaluate_every=10"),
            *("learning_rate=3e-3", "precision=fp32"),
            *more,
        ]

    return made


def refuse(*_, **__):
    raise AssertionError("sentence-transformers was used")


def write_json(file, **changes):
    values = json.loads(file.read_text())
    values = values | changes
    file.write_text(json.dumps({name: value for name, value in values.items() if value != "gone"}))
