import pytest

from simllm.text_cleaning import clean
from train.tokens import shards


@pytest.fixture
def run_folder(tmp_path, tokenizer, comments):
    """Write the files of a pretraining run that the export needs."""
    folder = tmp_path / "run"
    (folder / "vocabulary" / "some-1000").mkdir(parents=True)
    tokenizer.backend.save(str(folder / "vocabulary" / "some-1000" / "tokenizer.json"))
    for name, texts in (("train.txt", comments[:300]), ("test.txt", comments[300:350])):
        file = tmp_path / name
        file.write_text("".join(clean(text) + "\n" for text in texts))
        shards.write_or_load(file, name, tokenizer, 64, folder / "shards" / name)
    return folder
