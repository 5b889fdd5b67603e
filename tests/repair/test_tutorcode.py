"""Conversion of TutorCode items."""

import json

import pytest

from simllm.repair.items import read_items
from tests import command

PUBLISHED = {
    "incorrectCode": "int main() {}",
    "problemId": 62516,
    "problemDescription": "Add.",
    "judgeResult": {"timeLimit": 2500, "memoryLimit": 131073, "fileName": "add", "case_cnt": 2},
    "tutorGuidance": "Look at line 1.",
    "solutionDescription": "Add them.",
    "groudTruthCode": "int main() { return 0; }",
    "statusId": 1,
}


@pytest.fixture
def published(tmp_path):
    """Return a function that writes a folder with an item and its tests."""

    def write(change=None, cases=2):
        folder = tmp_path / "set"
        (folder / "cases" / "62516").mkdir(parents=True)
        (folder / "651.json").write_text(json.dumps(PUBLISHED | (change or {})))
        for n in range(cases):
            file = folder / "cases" / "62516" / f"{n + 9}.json"
            file.write_text(json.dumps({"input": f"{n}", "output": f"{n + 1}"}))
        return folder

    return write


def test_fields_of_the_reference_vectors(published, vectors, tmp_path):
    fields = vectors("published")["TutorCode item"]
    assert {"incorrectCode", "groudTruthCode (spelt so)"} < set(fields.values())
    file = tmp_path / "items.jsonl"
    done = command.run("repair", "import", "tutorcode", published(), "-o", file)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    [item] = read_items(file)
    assert (item.id, item.language, item.group) == ("651", "cpp", "62516")
    assert (item.time, item.memory) == (2.5, 129)
    assert (item.files.input, item.files.output) == ("add.in", "add.out")
    assert (item.code, item.fix) == (PUBLISHED["incorrectCode"], PUBLISHED["groudTruthCode"])
    assert (item.guidance, item.solution, item.description) == ("Look at line 1.", "Add them.", "Add.")
    assert [test.input for test in item.tests] == ["0", "1"]


@pytest.mark.parametrize(
    ("change", "cases", "message"),
    [
        (
            {"judgeResult": {"timeLimit": "1", "memoryLimit": 1}},
            2,
            "expected a positive number under timeLimit",
        ),
        ({"judgeResult": 1}, 2, "expected a JSON object under judgeResult"),
        ({"incorrectCode": 1}, 2, 'expected a text under "incorrectCode", not 1'),
        ({}, 1, "holds 1 tests; "),
        ({}, 0, "holds no tests"),
    ],
)
def test_wrong_folders(published, tmp_path, change, cases, message):
    file = tmp_path / "items.jsonl"
    done = command.run("repair", "import", "tutorcode", published(change, cases), "-o", file)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert not file.exists()


def test_a_folder_without_items(tmp_path):
    (tmp_path / "set").mkdir()
    done = command.run("repair", "import", "tutorcode", tmp_path / "set", "-o", tmp_path / "items.jsonl")
    assert (done.returncode, "holds no items" in done.stderr) == (2, True)


def test_an_output_inside_the_set_is_refused(published):
    folder = published()
    file = next(file for file in sorted(folder.rglob("*.json")))
    before = file.read_bytes()
    done = command.run("repair", "import", "tutorcode", folder, "-o", file, "--overwrite")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "is the source" in done.stderr
    assert file.read_bytes() == before


@pytest.mark.parametrize("problem", ["..", "../set/cases/62516", "/etc", "", "a/b"])
def test_a_problem_is_a_folder_in_cases(published, problem, tmp_path):
    folder = published({"problemId": problem})
    done = command.run("repair", "import", "tutorcode", folder, "-o", tmp_path / "items.jsonl")
    assert done.returncode == 2
    assert f"651.json: problemId {problem!r}: expected the name of a folder in cases" in done.stderr
    assert done.stderr.count("\n") == 1


def test_links_to_elsewhere_and_devices_are_not_read(published, tmp_path):
    folder = published()
    (tmp_path / "secret.json").write_text(json.dumps({"input": "secret", "output": "1"}))
    link = folder / "cases" / "62516" / "10.json"
    for target in (tmp_path / "secret.json", "/dev/zero"):
        link.unlink()
        link.symlink_to(target)
        done = command.run("repair", "import", "tutorcode", folder, "-o", tmp_path / "items.jsonl")
        assert done.returncode == 2
        assert "10.json: expected a file in" in done.stderr
        assert not (tmp_path / "items.jsonl").exists()


@pytest.mark.parametrize("number", ["9" * 400, "1e999"])
def test_huge_limits_are_refused(published, tmp_path, number):
    folder = published()
    file = folder / "651.json"
    for key, value in (("timeLimit", 2500), ("memoryLimit", 131073)):
        text = json.dumps(PUBLISHED)
        file.write_text(text.replace(f'"{key}": {value}', f'"{key}": {number}'))
        done = command.run("repair", "import", "tutorcode", folder, "-o", tmp_path / "items.jsonl")
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)
        assert f"expected a positive number under {key}" in done.stderr


def test_tiers_come_from_the_set(published, tmp_path):
    folder = published()
    (folder / "tiers.config").write_text("1 Sort T2\n62516 Dynamic Programming T10\n\n")
    file = tmp_path / "items.jsonl"
    done = command.run("repair", "import", "tutorcode", folder, "-o", file)
    assert (done.returncode, done.stderr) == (0, "")
    assert read_items(file)[0].tier == "T10"
    (tmp_path / "own").write_text("1 Sort T2\n")
    done = command.run(
        "repair", "import", "tutorcode", folder, "--tiers", tmp_path / "own", "-o", tmp_path / "b"
    )
    assert (done.returncode, done.stderr) == (
        0,
        f"simllm: warning: {tmp_path / 'own'}: has no tier of problem 62516\n",
    )
    assert read_items(tmp_path / "b")[0].tier is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1\n", "line 1: expected a problem, its topic and its tier"),
        ("1 A T1\n1 A T2\n", "line 2: a second tier"),
    ],
)
def test_wrong_tiers(published, tmp_path, text, message):
    folder = published()
    (folder / "tiers.config").write_text(text)
    done = command.run("repair", "import", "tutorcode", folder, "-o", tmp_path / "b")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert message in done.stderr
