"""Random embeddings, and the losses of sentence-transformers, with which our losses are compared."""

import pytest
import torch


@pytest.fixture(scope="module")
def reference_losses():
    """Return the losses of sentence-transformers (imported here because that takes seconds)."""
    return pytest.importorskip("sentence_transformers.sentence_transformer.losses")


@pytest.fixture(scope="module")
def reference_model(model_folder):
    """Return a model for the constructors of the losses; the losses are computed from given embeddings."""
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(str(model_folder), device="cpu")


def embeddings(count, rows=20, seed=0):
    return torch.randn(count, rows, 32, generator=torch.Generator().manual_seed(seed))


def with_gradients(loss, *rows):
    leaves = [row.clone().requires_grad_() for row in rows]
    value = loss(*leaves)
    value.backward()
    return torch.cat([value.detach().reshape(1), *(leaf.grad.flatten() for leaf in leaves)])
