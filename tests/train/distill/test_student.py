"""The student before training: it starts with token vectors and layers of a teacher."""

import shutil
from dataclasses import replace

import pytest
import torch

from simllm import InputError
from simllm.model.config import ModelConfig
from train.distill.__main__ import average_token_vectors, make_student
from train.distill.config import StartConfig
from train.distill.targets import compute_principal_axes
from train.distill.teachers import load_encoder, load_tokenizer

CONFIG = ModelConfig(
    vocab_size=1000,
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=48,
    max_position_embeddings=66,
)


@pytest.fixture(scope="module")
def loaded(teachers):
    return {kind: (load_encoder(folder), load_tokenizer(folder)) for kind, folder in teachers.items()}


@pytest.mark.parametrize("kind", ["bert", "mpnet"])
def test_a_token_starts_from_the_vectors_of_its_characters(loaded, tokenizer, kind):
    teacher, backend = loaded[kind]
    vectors, table = average_token_vectors(teacher, backend, tokenizer), teacher.embeddings.token.weight
    ids = {tokenizer.id_to_token(number): number for number in range(tokenizer.vocab_size)}
    names = ("[CLS]", "[SEP]", "[MASK]") if kind == "bert" else ("<s>", "</s>", "<mask>")
    for ours, theirs in zip(("<s>", "</s>", "<mask>"), names, strict=True):
        assert torch.equal(vectors[ids[ours]], table[backend.token_to_id(theirs)])
    assert not vectors[ids["<pad>"]].any()
    for word in ("returns", "the", "object"):
        pieces = backend.encode(word, add_special_tokens=False).ids
        assert torch.allclose(vectors[ids[f"▁{word}"]], table[pieces].mean(0), atol=1e-6)
    inside = next(t for t in ids if t.isalpha() and t.isascii() and backend.token_to_id(f"##{t}"))
    assert torch.equal(vectors[ids[inside]], table[backend.token_to_id(f"##{inside}")])


def test_layers_are_copied(teachers, loaded, tokenizer):
    teacher, _ = loaded["bert"]
    student = make_student(CONFIG, tokenizer, StartConfig(teacher=str(teachers["bert"]), layers=(0, 2)), 1)
    for layer, number in zip(student.layers, (0, 2), strict=True):
        expected = teacher.layers[number].state_dict()
        assert all(torch.equal(tensor, expected[name]) for name, tensor in layer.state_dict().items())
    positions = student.embeddings.position.weight
    assert torch.equal(positions, teacher.embeddings.position.weight[:66])
    assert torch.equal(student.embeddings.norm.weight, teacher.embeddings.norm.weight)
    assert torch.equal(student.relative_bias.table.weight, teacher.relative_bias.table.weight)


def test_without_layers_only_the_token_vectors_are_copied(teachers, tokenizer):
    source = StartConfig(teacher=str(teachers["bert"]))
    student, fresh = make_student(CONFIG, tokenizer, source, 1), make_student(CONFIG, tokenizer, None, 1)
    for name, tensor in student.state_dict().items():
        assert torch.equal(tensor, fresh.state_dict()[name]) == (name != "embeddings.token.weight")


def test_wide_token_vectors_are_reduced_to_their_principal_axes(teachers, loaded, tokenizer):
    narrow = replace(CONFIG, hidden_size=16)
    student = make_student(narrow, tokenizer, StartConfig(teacher=str(teachers["bert"])), 1)
    vectors = average_token_vectors(*loaded["bert"], tokenizer)
    expected = vectors @ torch.from_numpy(compute_principal_axes(vectors.numpy(), 16))
    found = student.embeddings.token.weight
    assert torch.allclose(found, expected, atol=1e-5)
    kept = found.square().sum() / vectors.square().sum()
    assert 0.6 < kept < 1


def test_initial_student_depends_on_the_seed(tokenizer):
    one, again, other = (make_student(CONFIG, tokenizer, None, seed).state_dict() for seed in (1, 1, 2))
    assert all(torch.equal(one[name], again[name]) for name in one)
    assert not torch.equal(one["layers.0.up.weight"], other["layers.0.up.weight"])


@pytest.mark.parametrize(
    ("kind", "changes", "layers", "message"),
    [
        ("mpnet", {}, (), "has width 24, the student 32"),
        ("bert", {"hidden_size": 16}, (0, 1), "the student's hidden_size is 16, the teacher's 32"),
        ("bert", {"num_attention_heads": 2}, (0, 1), "num_attention_heads is 2, the teacher's 4"),
        ("bert", {"intermediate_size": 64}, (0, 1), "intermediate_size is 64, the teacher's 48"),
        ("bert", {}, (0,), "expected 2 numbers from 0 to 2, one for each layer"),
        ("bert", {}, (0, 3), "expected 2 numbers from 0 to 2"),
        ("bert", {}, (-1, 0), "expected 2 numbers from 0 to 2"),
        ("bert", {"max_position_embeddings": 80}, (0, 1), "max_position_embeddings is 80, the teacher's 72"),
        ("bert", {"relative_attention_num_buckets": 16}, (0, 1), "16 relative positions, the teacher has 32"),
    ],
)
def test_teacher_with_another_shape_is_refused(teachers, tokenizer, kind, changes, layers, message):
    source = StartConfig(teacher=str(teachers[kind]), layers=layers)
    with pytest.raises(InputError, match=message):
        make_student(replace(CONFIG, **changes), tokenizer, source, 1)


def test_a_teacher_of_another_kind_is_refused(teachers, tokenizer, tmp_path):
    folder = shutil.copytree(teachers["bert"], tmp_path / "teacher")
    (folder / "config.json").write_text('{"model_type": "t5"}')
    with pytest.raises(InputError, match="expected model_type bert or mpnet, not 't5'"):
        make_student(CONFIG, tokenizer, StartConfig(teacher=str(folder)), 1)
