from tests.train.corpus.conftest import rows
from train.corpus import build
from train.runtime.config import CorpusConfig

OLD = '"""Module."""\n\ndef area(shape):\n    """Give the surface of a shape."""\n'
NEW = '"""Module."""\n\ndef area(shape):\n    """Returns how large it is."""\n'


def corpus(tmp_path, git, tree, last):
    work = tree(tmp_path / "work", 90)
    git(work, "init")
    for version, code in enumerate((OLD, last)):
        (work / "shape.py").write_text(code)
        git(work, "add", ".")
        git(work, "commit", "-m", str(version))
        git(work, "tag", f"v{version}")
    build.build(CorpusConfig((str(work),), tags=5, test_share=0.05), tmp_path / "corpus")
    return {
        (row["a"], row["b"]) for row in rows(tmp_path / "corpus", "pairs.jsonl") if row["kind"] == "version"
    }


def test_a_function_in_two_versions_is_a_pair(tmp_path, git, tree):
    assert corpus(tmp_path, git, tree, NEW) == {
        ("returns how large it is .", "give the surface of a shape .")
    }


def test_functions_of_one_name_in_one_file_are_none(tmp_path, git, tree):
    again = NEW.partition("\n\n")[2].replace("how large", "how small")
    assert not corpus(tmp_path, git, tree, NEW + "\n\n" + again)


def test_pairs_train_the_contrastive_stage(tree, tmp_path):
    from simllm.perturb.summaries import lexicon
    from train.contrastive.positive_pairs import Positives
    from train.corpus.decontaminate import Evaluated
    from train.runtime.config import PositivesConfig

    build.build(CorpusConfig((str(tree(tmp_path / "code" / "a").parent),)), tmp_path / "corpus")
    config = PositivesConfig(source=str(tmp_path / "corpus" / "pairs.jsonl"), share=1.0)
    assert len(Positives(config, Evaluated([]), lexicon.load())) >= 2
