"""The code reader from source trees to scores: pairs, training, resuming, measuring, and the model folder."""

import hashlib
import itertools
import json
import re
import shutil

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from simllm import SimLLM
from simllm.analysis import golden_scores
from simllm.errors import InputError
from simllm.model import code_model, saved_model
from simllm.scoring.code import CodePair, CodeReader
from simllm.text_cleaning import clean
from tests.conftest import ROOT
from tests.train.training_processes import Runner, log
from train.code_reader import measure, pairs
from train.code_reader.measure import RatedCode, cross_validated, fit_weights, make_card
from train.code_reader.task import CodeReaderConfig, CodeReaderTask, Functions, siblings
from train.release import mix_weights
from train.release.card import decimal
from train.runtime.config import load
from train.runtime.distributed import World

COMMAND = "train.code_reader"
NOUNS = "user file list node page token server account order message image event".split()
VERBS = {"opens": "open", "removes": "remove", "counts": "count", "sorts": "sort"}


def write_trees(folder):
    """Write the source trees of four projects, each with a Java class and a Python module for each noun."""
    for number, project in enumerate(("alpha", "beta", "gamma", "delta", "eta", "theta", "iota", "kappa")):
        (folder / project).mkdir(parents=True)
        for noun in NOUNS[number:] + NOUNS[:number]:
            name = noun.capitalize()
            methods = "".join(
                f"    /** {verb.capitalize()} the {project} {noun} of the given store. */\n"
                f'    public int {word}{name}(Store store) {{\n        int total = store.{word}("{noun}");\n'
                f"        if (total < {number}) {{ return 0; }} else {{ return total; }}\n    }}\n"
                for verb, word in VERBS.items()
            )
            (folder / project / f"{name}.java").write_text(f"class {name} {{\n{methods}}}\n")
        functions = "".join(
            f'def {word}_{project}(store, limit):\n    """{verb.capitalize()} everything in {project}."""\n'
            f"    total = store.{word}(limit)\n    return total\n\n\n"
            for verb, word in VERBS.items()
        )
        (folder / project / "all.py").write_text(functions)


@pytest.fixture(scope="module")
def pairs_file(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trees")
    write_trees(folder / "trees")
    rated = folder / "rated.jsonl"
    rated.write_text(
        json.dumps(
            {
                "reference": "opens the alpha user of the given store",
                "candidate": "opens it",
                "code": "def count_beta(store, limit):\n    total = store.count(limit)\n    return total",
                "language": "python",
            }
        )
    )
    with pytest.MonkeyPatch.context() as patch:
        out = folder / "pairs.jsonl"
        patch.setattr(
            "sys.argv", ["pairs", str(folder / "trees"), "--exclude", str(rated), "--out", str(out)]
        )
        assert pairs.main() == 0
    return out


@pytest.fixture(scope="module")
def rows(pairs_file):
    return [json.loads(line) for line in pairs_file.read_text().splitlines()]


def test_pairs_have_code_summary_and_place(rows):
    java = next(row for row in rows if row["function"] == "sortUser" and row["repository"] == "beta")
    assert java["summary"] == "Sorts the beta user of the given store."
    assert java["class"] == "User"
    assert java["path"] == "User.java"
    assert java["code"].startswith("public int sortUser(Store store) {")
    assert {row["language"] for row in rows} == {"java", "python"}


def test_variants_differ_and_keep_the_name_of_the_function(rows):
    changed = [row for row in rows if "variant" in row]
    assert len(changed) > len(rows) / 2
    assert all(row["variant"] != row["code"] and row["function"] in row["variant"] for row in changed)


def test_rated_texts_and_code_are_left_out_and_nothing_occurs_twice(rows):
    assert not any(row["summary"] == "Opens the alpha user of the given store." for row in rows)
    assert not any(row["function"] == "count_beta" for row in rows)
    assert any(row["function"] == "count_alpha" for row in rows)
    assert len({row["summary"] for row in rows}) == len(rows) == len({row["code"] for row in rows})


def test_splits_follow_repositories(rows):
    splits = {}
    for row in rows:
        splits.setdefault(row["repository"], set()).add(row["split"])
    assert all(len(found) == 1 for found in splits.values())


def test_most_functions_of_a_repository_are_whole_files(call, pairs_file, tmp_path):
    out = tmp_path / "few.jsonl"
    done = call(pairs, pairs_file.parent / "trees", "--most", 10, "--out", out)
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in out.read_text().splitlines()]
    java = [row for row in found if row["language"] == "java" and row["repository"] == "alpha"]
    assert len(java) == 12
    assert len({row["path"] for row in java}) == 3


def test_trees_without_functions_are_an_error(call, tmp_path):
    (tmp_path / "empty").mkdir()
    done = call(pairs, tmp_path / "empty", "--out", tmp_path / "out.jsonl")
    assert done.returncode == 2
    assert "no documented functions" in done.stderr
    missing = call(pairs, tmp_path / "empty", tmp_path / "missing", "--out", tmp_path / "out.jsonl")
    assert (missing.returncode, missing.stderr) == (2, f"error: {tmp_path / 'missing'}: no such folder\n")
    assert not list(tmp_path.glob("*.jsonl*"))


@pytest.fixture(scope="module")
def split_file(rows, tmp_path_factory):
    """Write the pairs with two repositories for the criterion."""
    file = tmp_path_factory.mktemp("pairs") / "split.jsonl"
    for row in rows:
        row["split"] = "dev" if row["repository"] in ("eta", "theta") else "train"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


def settings(out, split_file, model_folder, *more):
    small = "functions=8 code_tokens=48 chunk_tokens=512 updates=6 evaluate_every=2 warmup_updates=1".split()
    head = "head={width: 16, layers: 1, heads: 2, encoder_layers: 2}"
    names = f"out={out}", f"model={model_folder}", f"pairs={split_file}", "learning_rate=0.003"
    return [ROOT / "configs/code.yaml", *names, head, *small, *more]


def test_functions_of_one_file_are_drawn_together(split_file):
    functions = Functions(split_file, "train")
    drawn = functions.draw(24, 3, np.random.default_rng(1))
    assert len(drawn) == 24
    runs = [list(group) for _, group in itertools.groupby(drawn, key=lambda one: (one.repository, one.path))]
    assert {len({one.code for one in group}) for group in runs} == {3}
    for index, function in enumerate(drawn):
        others = [drawn[i] for i in siblings(drawn, index)]
        assert others
        for other in others:
            assert other.name != function.name
            assert (other.repository, other.path) == (function.repository, function.path)


def test_siblings_have_the_same_file_and_another_name():
    def function(path, name):
        return measure.Function("", "", "", "java", "r", path, name, "")

    drawn = [function("A", "add"), function("A", "add"), function("A", "open"), function("B", "add")]
    assert [siblings(drawn, i) for i in range(4)] == [[2], [2], [0, 1], [0]]


@pytest.fixture(scope="module")
def trained(split_file, model_folder, tmp_path_factory):
    folder = tmp_path_factory.mktemp("training")
    status, errors = Runner(folder / "output")(COMMAND, *settings(folder / "run", split_file, model_folder))
    assert status == 0, errors
    return folder / "run"


def weights(folder):
    return {file.name: file.read_bytes() for file in folder.glob("*.safetensors")}


@pytest.mark.slow
def test_training_learns_resumes_and_leaves_the_summaries_alone(
    run, trained, split_file, model_folder, tmp_path
):
    lines = log(trained)
    assert [line["update"] for line in lines] == [2, 4, 6]
    assert {"auc_sibling", "fits_auc_changed"} <= lines[0].keys()
    summaries = saved_model.load(model_folder)
    code = code_model.load(trained / "model", summaries)
    shared = [model.encoder.embeddings.token.weight for model in (code, summaries)]
    assert shared[0].data_ptr() == shared[1].data_ptr()
    assert code.info.summaries == summaries.hash
    assert code.info.fits.fitted_on
    changed = code.encoder.layers[0].up.weight - summaries.encoder.layers[0].up.weight
    assert changed.abs().max() > 1e-4
    # The same command starts again after the last state, and ends with the same model.
    stopped = tmp_path / "stopped"
    shutil.copytree(trained, stopped)
    states = sorted((stopped / "states").iterdir())
    shutil.rmtree(states[-1]) if states[-1].is_dir() else states[-1].unlink()
    (stopped / "config.json").write_text(
        (stopped / "config.json").read_text().replace(str(trained), str(stopped))
    )
    status, errors = run(COMMAND, *settings(stopped, split_file, model_folder))
    assert status == 0, errors
    assert "resuming after update 4" in errors
    assert weights(stopped / "model") == weights(trained / "model")


def reader(folder, model_folder, divides=True, **options):
    metric = SimLLM(model_folder, **options)
    code = code_model.load(folder, metric.model)
    pooling = metric.code_reader.pooling
    return CodeReader(metric.model, metric.engine, pooling, code=code, divides=divides)


@pytest.mark.slow
def test_scores_and_fits_do_not_depend_on_the_batch(trained, model_folder, rows):
    scored = [CodePair(row["code"], row["summary"], row["language"]) for row in rows[:40]]
    together = reader(trained / "model", model_folder).score(scored)
    alone = [reader(trained / "model", model_folder).score([pair]) for pair in scored[:5]]
    assert np.allclose([one.values[0] for one in alone], together.values[:5], atol=1e-5)
    assert np.allclose([one.fits[0] for one in alone], together.fits[:5], atol=1e-5)
    assert ((together.fits >= 0) & (together.fits <= 1)).all()
    fast = reader(trained / "model", model_folder, mode="fast").score(scored)
    assert np.abs(fast.fits - together.fits).max() < 0.05


@pytest.mark.slow
def test_fits_of_a_long_summary_is_that_of_its_worst_clause(trained, model_folder):
    read = reader(trained / "model", model_folder)
    code, texts = (
        "int openUser(Store store) { return store.open(1); }",
        ["Opens the user.", "Sorts the file."],
    )
    each = [read.score([CodePair(code, text, "java")]) for text in texts]
    both = read.score([CodePair(code, " ".join(texts), "java")])
    assert both.fits[0] == pytest.approx(min(one.fits[0] for one in each), abs=1e-5)
    assert read.score([CodePair(code, "", "java")]).fits.tolist() == [0]


@pytest.mark.slow
def test_a_sentence_that_is_cleaned_already_is_scored_whole(trained, model_folder):
    """As in the measurement; in a cleaned text, the "." of `this.done()` looks like the end of a sentence."""
    code, text = "boolean poll() { return this.done(); }", "Waits until this.done() is true"
    written, cleaned = (CodePair(code, each, "java") for each in (text, clean(text)))
    as_written = reader(trained / "model", model_folder).score([written])
    whole = reader(trained / "model", model_folder, divides=False).score([cleaned])
    assert as_written.values == pytest.approx(whole.values, abs=1e-6)
    assert as_written.fits == pytest.approx(whole.fits, abs=1e-6)


@pytest.mark.slow
def test_the_map_of_summaries_begins_as_identity_and_is_learned(trained, model_folder):
    summaries = saved_model.load(model_folder)
    code = code_model.load(trained / "model", summaries)
    begun = code_model.start(summaries, code.info)
    rows = np.random.default_rng(1).normal(size=(3, summaries.config.hidden_size)).astype(np.float32)
    assert (begun.map_summaries(rows) == rows).all()
    mapped = code.map_summaries(rows)
    assert not np.allclose(mapped, rows, atol=1e-4)
    with torch.no_grad():
        assert np.allclose(code.summary_map(torch.tensor(rows)).numpy(), mapped, atol=1e-5)


@pytest.mark.slow
def test_an_evaluation_uses_the_present_weights(split_file, model_folder, rows, tmp_path):
    """The weights that a training changes are those that its reader scores with, and that are stored."""
    path, *overrides = settings(tmp_path / "run", split_file, model_folder)
    task = CodeReaderTask(load(CodeReaderConfig, path, overrides), World())
    with torch.no_grad():
        for part in (task.encoder.layers[0].up, task.code.summary_map, task.head.hidden):
            part.weight += 0.1 * torch.randn_like(part.weight)
    code_model.save(tmp_path / "model", task.code, task.code.info, "# A card\n")
    scored = [CodePair(row["code"], row["summary"], row["language"]) for row in rows[:10]]
    stored = reader(tmp_path / "model", model_folder).score(scored)
    now = task.reader().score(scored)
    assert now.cosines == pytest.approx(stored.cosines, abs=0.01)
    assert now.fits == pytest.approx(stored.fits, abs=0.02)


@pytest.mark.slow
def test_a_reader_of_another_encoder_is_not_used(trained, model_folder, head_folder, tmp_path):
    summaries = saved_model.load(model_folder)
    torch.manual_seed(5)
    other = tmp_path / "other"
    encoder = type(summaries.encoder)(summaries.encoder.config)
    saved_model.save(other, encoder, summaries.tokenizer, saved_model.ModelInfo(), "# A card\n")
    assert code_model.load(trained / "model", saved_model.load(other)) is None
    # But another reader can start from it.
    earlier = code_model.load(trained / "model", summaries)
    started = code_model.start(
        saved_model.load(other), code_model.CodeInfo("", earlier.info.fits), trained / "model"
    )
    assert torch.equal(started.encoder.layers[1].up.weight, earlier.encoder.layers[1].up.weight)
    assert all(map(torch.equal, started.head.parameters(), earlier.head.parameters()))


@pytest.mark.slow
def test_readers_are_mixed_with_their_heads(call, trained, model_folder, tmp_path):
    weights = load_file(trained / "model" / "model.safetensors")
    others = [shutil.copytree(trained / "model", tmp_path / name) for name in ("near", "far")]
    for step, other in zip((0.5, 1.5), others, strict=True):
        moved = {name: weight + step for name, weight in weights.items()}
        save_file(moved, other / "model.safetensors")
    out, share = tmp_path / "mixed", ("--share", "0.25")
    for _ in range(2):  # it replaces its own
        done = call(mix_weights, trained, out, "--start", *others, *share)
        assert done.returncode == 0, done.stderr
    for name, weight in load_file(out / "model.safetensors").items():  # a quarter of the mean step, 1
        torch.testing.assert_close(weight.float(), weights[name].float() + 0.25, atol=2e-3, rtol=1e-3)
    mixed = code_model.load(out, saved_model.load(model_folder)).info
    assert (mixed.fits.fitted_on, mixed.both_fitted_on) == ("", "")  # calibration is the next step
    assert mixed.provenance["start_share"] == 0.25
    settings = json.loads((others[0] / "code.json").read_text())
    heads = settings["fits"]["head"] | {"heads": 1}
    for changed in ({"summaries": "0" * 12}, {"fits": settings["fits"] | {"head": heads}}):
        (others[0] / "code.json").write_text(json.dumps(settings | changed))
        done = call(mix_weights, trained, tmp_path / "no", "--start", others[0], *share)
        assert done.returncode == 2
        assert f"{others[0]}: has another shape or encoder of summaries" in done.stderr
        assert not (tmp_path / "no").exists()
    # The reader from which a training started may have read with an earlier encoder of summaries.
    (others[0] / "code.json").write_text(json.dumps(settings | {"summaries": "0" * 12}))
    end = shutil.copytree(trained, tmp_path / "end")
    start = hashlib.sha256((others[0] / "model.safetensors").read_bytes()).hexdigest()[:12]
    facts = settings["provenance"] | {"start": start}
    (end / "model" / "code.json").write_text(json.dumps(settings | {"provenance": facts}))
    done = call(mix_weights, end, tmp_path / "yes", "--start", others[0], *share)
    assert done.returncode == 0, done.stderr
    assert code_model.load(tmp_path / "yes", saved_model.load(model_folder))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("model.safetensors", b"damaged", "damaged"),
        ("code.json", b"{}", "summaries"),
        ("code.json", b"[", "code.json"),
    ],
)
def test_a_damaged_folder_is_one_line(trained, model_folder, tmp_path, file, content, message):
    damaged = shutil.copytree(trained / "model", tmp_path / "damaged")
    (damaged / file).write_bytes(content)
    with pytest.raises(InputError, match=message):
        code_model.load(damaged, saved_model.load(model_folder))


@pytest.mark.slow
def test_measure_prints_all_figures_and_releases_the_model(
    call, trained, split_file, model_folder, rows, tmp_path
):
    rated = tmp_path / "rated.jsonl"
    values = np.random.default_rng(1).integers(1, 6, 60).tolist()
    lines = [
        {
            "code": row["code"],
            "candidate": row["summary"],
            "reference": rows[i // 2]["summary"],
            "rating": value,
        }
        for i, (row, value) in enumerate(zip(rows, values, strict=False))
    ]
    rated.write_text("".join(json.dumps(line) + "\n" for line in lines))
    # The model's own calibration, here a wrong one, is undone.
    model = shutil.copytree(trained / "model", tmp_path / "model")
    settings = json.loads((model / "code.json").read_text())
    right = settings["fits"]["slope"]
    settings["fits"] |= {"slope": 9.0, "intercept": 5.0, "fitted_on": "nothing"}
    (model / "code.json").write_text(json.dumps(settings))
    parts = {split: tmp_path / f"{split}.jsonl" for split in ("train", "dev")}
    for split, part in parts.items():
        kept = [line for line in split_file.read_text().splitlines() if json.loads(line)["split"] == split]
        part.write_text("\n".join(kept) + "\n")
    options = ["--pairs", parts["train"], "--rated", rated, "--model", model, "--dev", parts["dev"]]
    out = tmp_path / "released"
    done = call(measure, *options, "--summaries", model_folder, "--release", out)
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout[: done.stdout.index("}") + 1])
    expected = {"rated_code", "rated_reference", "rated_both", "auc_sibling", "fits_auc_changed", "move"}
    assert expected <= figures.keys()
    released = code_model.load(out, saved_model.load(model_folder))
    assert sum(released.info.both) == pytest.approx(1)
    assert released.info.both_fitted_on == "rated, the dev split"
    assert released.info.fits.slope == pytest.approx(right, rel=0.2)
    assert released.info.fits.fitted_on != "nothing"
    same = call(measure, *options[2:], "--pairs", parts["dev"], "--summaries", model_folder)
    assert (same.returncode, same.stderr.count("\n")) == (2, 1)
    assert "has repositories of --pairs" in same.stderr
    shared = call(measure, "--pairs", parts["train"], "--rated", rated, "--dev", parts["dev"], "--shared")
    assert (shared.returncode, shared.stderr.count("\n")) == (2, 1)
    assert "--dev needs a model that reads code" in shared.stderr
    assert str(tmp_path.parent) in (trained / "model" / "code.json").read_text()
    assert not re.search(r'"/\w', (out / "code.json").read_text())
    assert 0 <= released.info.unsupported == figures["unsupported"] <= 1
    assert released.info.unsupported != 0.3
    assert golden_scores.largest_difference(reader(out, model_folder), out) < 1e-5
    card = (out / "README.md").read_text()
    for name in ("auc_sibling", "mutants_fall"):
        both = " | ".join(decimal(figures[prefix + name]) for prefix in ("", "fits_"))
        assert f"| {measure._OF_FUNCTIONS[name]} | {both} |" in card
    assert f"| rated | {decimal(figures['rated_reference'])} | {decimal(figures['rated_code'])} |" in card


def test_summaries_of_functions_with_the_same_name_are_not_wrong(tmp_path):
    """Overloads do the same; so the only wrong summary is that of the third function of the file."""
    names = {"adds two numbers": "add", "computes the sum of a list": "add", "opens the file": "open"}
    place = {"language": "java", "repository": "r", "path": "A.java"}
    rows = [{"code": f"{name}()", "summary": text, "function": name} | place for text, name in names.items()]
    file = tmp_path / "pairs.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    for seed in range(8):
        wrong = {
            trial.function.summary: trial.sibling for trial in measure.make_trials(file, None, seed, draws=4)
        }
        assert [wrong[text] for text in list(names)[:2]] == [["opens the file"] * 4] * 2
        assert {names[text] for text in wrong["opens the file"]} == {"add"}
        assert len(wrong["opens the file"]) == 4


def test_weights_are_fitted_to_what_agrees_with_people():
    random = np.random.default_rng(0)
    features, codes = random.normal(size=(200, 3)), [CodePair(f"code {i // 2}", "", None) for i in range(200)]
    ratings = features[:, 1] * 0.7 + features[:, 0] * 0.3
    assert fit_weights([(features, ratings)]).tolist() == pytest.approx([0.3, 0.7, 0])
    rated = RatedCode("x", codes, [""] * 200, ratings)
    by_code, both = cross_validated([rated], [features])[0]
    assert both > 0.99
    assert by_code == pytest.approx(np.corrcoef(features[:, 1], ratings)[0, 1], abs=0.05)
    # Functions whose true summaries only `fits` tells pull the weight to it; the reference keeps its own.
    true, wrong = random.normal(size=(2, 400, 2))
    true[:, 1] += 3
    pulled = fit_weights([(features, ratings)], [(true, wrong), (true, wrong)])
    assert pulled.sum() == pytest.approx(1)
    assert pulled[2] > 0.2
    assert pulled[0] == pytest.approx(0.3, abs=0.1)
    # A set of twenty hardly changes the weights that a set of two hundred has.
    few = random.normal(size=(20, 3))
    assert fit_weights([(features, ratings), (few, few[:, 2])])[2] < 0.1
    noise = RatedCode("x", codes, [""] * 200, random.normal(size=200))
    assert max(map(abs, cross_validated([noise], [features])[0])) < 0.25


@pytest.mark.slow
def test_scores_without_torch_are_equal(trained, model_folder, rows):
    scored = [CodePair(row["code"], row["summary"], row["language"]) for row in rows[:40]]
    torchs, others = (
        reader(trained / "model", model_folder, engine=engine).score(scored)
        for engine in ("torch", "onnxruntime")
    )
    assert np.abs(torchs.values - others.values).max() < 1e-5
    assert np.abs(torchs.fits - others.fits).max() < 1e-5


def test_each_fact_of_the_included_model_has_a_sentence_or_label_in_the_card():
    facts = json.loads((ROOT / "checkpoints" / "code" / "code.json").read_text())["provenance"]
    card = make_card(facts)
    assert "| Roy 2021, dev half | " in card
    assert f"| functions | {facts['functions']:,} |" in card
    for name, value in facts.items():
        assert "_" not in name or name not in card, name  # no bare names of fields
        if isinstance(value, float):
            assert decimal(value) in card or f"{value:.0%}" in card or str(value) in card, name
    before_release = {name: facts[name] for name in ("objective", "functions", "updates", "tokens")}
    assert make_card(before_release).count("|") == 3 * (2 + 4)
    assert "How good it is" not in make_card(before_release)
