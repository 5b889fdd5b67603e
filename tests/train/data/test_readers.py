"""Every reader of published files, through the command line."""

import hashlib
import io
import json
import zipfile

import pytest

from tests.train.data.conftest import a_file, a_set, digest, fetch, packed_lines, write_catalog
from tests.train.data.excel_sheet import write_xls
from train.data.catalog import READERS


def zipped(name, text):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr(name, text)
    return content.getvalue()


def is_left_out(text):
    """Return whether the reader of Breaking NLI leaves out a sentence, which depends on the text's hash."""
    return int(hashlib.md5(text.encode()).hexdigest(), 16) % 4 == 0


SENTENCES = [f"Sentence {n} ." for n in range(99)]
KEPT, LEFT_OUT = (next(text for text in SENTENCES if is_left_out(text) is out) for out in (False, True))
NLI = "".join(
    json.dumps({"sentence1": text, "sentence2": "Other .", "gold_label": "neutral", "category": "colors"})
    + "\n"
    for text in (LEFT_OUT, KEPT)
)
STRINGS = (
    '<?xml version="1.0"?><sst xmlns="http://x">'
    "<si><t>Adds one .</t></si><si><r><t>Ab</t></r><r><t>c</t></r></si></sst>"
)
RATERS = range(1, 7)  # three raters see the reference first, and three the candidate
HAQUE = [
    ",Unnamed: 0,function_id,user_id,accurate,adequate,concise,similarity,source,text,text.1,bleu,x,function",
    *(f"0,0,7,{n},4,{n},2,4,reference,adds two,sums  <UNK> both,0.5,,7" for n in RATERS if n % 2 == 0),
    *(f"0,0,7,{n},4,{n},2,3,baseline,sums  <UNK> both,adds two,0.5,,7" for n in RATERS if n % 2 == 1),
]
SHEET = [
    ["", "code", "id", "ref", "can", "bleu4", "bleu42", "rouge", "cider", "ciderd", "human"],
    [0.0, "int f", 22.0, "adds two", "sums", 0.0, 0.25, 0.5, 1.5, 2.0, 4.0],
    ["", "code", "id", "ref", "can", "bleu4", "bleu42", "rouge", "cider", "ciderd", "human"],
]
CONALA = [
    {"intent": "How to add?", "rewritten_intent": "add `x` and `y`", "question_id": 5},
    {"intent": "Add ", "rewritten_intent": "Add", "question_id": 6},
    {"intent": "Sort it", "rewritten_intent": None, "question_id": 7},
]
COSQA = {"doc": "python add", "docstring_tokens": "Add ( x ) .", "code": "f"}
GRADES = {
    "snippet": ["f()"],
    "best": "g()",
    "codex": "h()",
    "grade-best": {"grader1": 0},
    "grade-snippet": {"grader1": 4},
    "grade-codex": {"grader2": 3},
}
DOCSTRINGS = b"'Adds DCNL DCSP x. DCNL :param x: it'\n\"caf\xe9 >> it>>>> f()\"\n'" + b"a" * 500 + b"'\n"
ABBREVIATIONS = {"word": "index", "abbrs": [{"abbr": "idx", "degree": "fine", "context": "c"}]}

# reader -> files of the repository, and the expected rows
CASES = {
    "lines": (
        {"a.nl": "adds  two\r\nsets it\u2028now\n"},
        [{"text": "adds  two"}, {"text": "sets it\u2028now"}],
    ),
    "lines_with_id": ({"id.nl": "31\tadds\ttwo\n"}, [{"text": "adds\ttwo"}]),
    "titles": ({"titles.txt": '3\t4\tmake a "list"\tselect 1\t0.1\n'}, [{"text": 'make a "list"'}]),
    "comment_files": (
        {"f/10.txt": "TDAT: int f <NL>\nCOM: <s> adds two </s>\n", "f/9.txt": "COM:<s>sets</s>"},
        [{"text": "  adds two \n"}, {"text": "sets"}],
    ),
    "docstrings": (
        {"d.desc": DOCSTRINGS},
        [{"text": "Adds     x.   "}, {"text": "caf\ufffd >> it"}, {"text": "a" * 400}],
    ),
    "conala": (
        {"conala.json": json.dumps(CONALA[:1] + CONALA[2:])},
        [
            {"source": "conala/intent", "text": "How to add?"},
            {"source": "conala/rewritten_intent", "text": "add `x` and `y`"},
            {"source": "conala/intent", "text": "Sort it"},
        ],
    ),
    "cosqa": (
        {"q.json": json.dumps([COSQA])},
        [
            {"source": "cosqa/query", "text": "python add"},
            {"source": "cosqa/docstring", "text": "Add ( x ) ."},
        ],
    ),
    "numbered_lists": (
        {"r.json": '{"0": ["adds"], "1": ["sets", "gets"]}'},
        [{"text": t} for t in ("adds", "sets", "gets")],
    ),
    "headlines": (
        {"news.csv": "day,text\n20030219,mayor opens, then shuts gate\n20030219,rain\n2003"},
        [{"text": "mayor opens, then shuts gate"}],
    ),
    "split_sentences": (
        {"tune.tsv": "Ann ( a '' tall '' one ) left , I ran .\tAnn left . <::::> Bo and I sat down .\n"},
        [{"text": 'Ann (a "tall" one) left, I ran.'}, {"text": "Bo and I sat down."}],
    ),
    "treebank_sentences": (
        {"t.conllu": "# sent_id = 1\n# text = It is a treebank.\n1\tIt\tit\n\n# text = Too short\n1\tToo\n"},
        [{"text": "It is a treebank."}],
    ),
    "descriptions_by_id": (
        {"data/sql/dev/ref.txt": "1\ta \n2\tb\n1\tc\n1\td\n"},
        [{"group": "codenn-sql-1", "a": a, "b": b} for a, b in (("a", "c"), ("a", "d"), ("c", "d"))],
    ),
    "descriptions_by_command": (
        {"all.nl": "list\nshow \nlist\nmove\n", "all.cm": "ls\nls \nls\nmv\n"},
        [{"group": "nl2bash-ls", "a": "list", "b": "show"}],
    ),
    "rewritten_intents": (
        {"intents.json": json.dumps(CONALA)},
        [{"group": "conala-5", "a": "How to add?", "b": "add `x` and `y`"}],
    ),
    "generated_summaries": (
        {"RQ/RQ3/CSN/test.gold": "adds two\nsets\n", "RQ/RQ3/CSN/rencos/random0/test.pred": "sums\nputs\n"},
        [
            {"dataset": "CSN", "model": "rencos", "reference": "adds two", "candidate": "sums"},
            {"dataset": "CSN", "model": "rencos", "reference": "sets", "candidate": "puts"},
        ],
    ),
    "haque": (
        {"m.csv": "\n".join(HAQUE) + "\n"},
        [
            {
                "id": 7,
                "language": "java",
                "reference": "adds two",
                "candidate": "sums  <UNK> both",
                "candidate_clean": "sums both",
                "rating": 3.5,
                "ratings": [4, 4, 4, 3, 3, 3],
                "raters": [2, 4, 6, 1, 3, 5],
                "accurate_candidate": [4, 4, 4],
                "adequate_candidate": [1, 3, 5],
                "concise_candidate": [2, 2, 2],
                "accurate_reference": [4, 4, 4],
                "adequate_reference": [2, 4, 6],
                "concise_reference": [2, 2, 2],
                "metrics": {"bleu": 0.5, "x": None},
            }
        ],
    ),
    "shen": (
        {"java.xls": write_xls(SHEET)},
        [
            {
                "id": 0,
                "language": "java",
                "reference": "adds two",
                "candidate": "sums",
                "rating": 4.0,
                "ratings": [4],
                "fid": "22",
                "code": "int f",
                "metrics": {"bleu4": 0.0, "bleu42": 0.25, "rouge": 0.5, "cider": 1.5, "ciderd": 2.0},
            }
        ],
    ),
    "conala_grades": (
        {"g.json": json.dumps([GRADES])},
        [
            {
                "id": f"0/{system}",
                "reference": "f()",
                "candidate": text,
                "language": "python",
                "system": system,
                "ratings": grades,
            }
            for system, text, grades in (("best", "g()", {"grader1": 0}), ("codex", "h()", {"grader2": 3}))
        ],
    ),
    "commit_messages": (
        {"h.csv": 'url,Generation,Reference,code_diff\nu,"Fix it","Fix, now","a\nb"\n'},
        [{"reference": "Fix, now", "candidate": "Fix it"}],
    ),
    "texts_of_workbook": (
        {"w.xlsx": zipped("xl/sharedStrings.xml", STRINGS)},
        [{"text": "Adds one ."}, {"text": "Abc"}],
    ),
    "stsb": ({"s.csv": '"A, b.",A c.,3.8\r\n'}, [{"a": "A, b.", "b": "A c.", "score": 3.8}]),
    "sick": (
        {"S.txt": "pair_ID\tsentence_A\tsentence_B\tr\te\n1\tA b\tA c\t4.5\tNEUTRAL\n"},
        [{"a": "A b", "b": "A c", "score": 4.5, "nli": "NEUTRAL"}],
    ),
    "semeval": (
        {"2012/MSRpar.test.tsv": '4.400\tA "b\tA c\n\tno\tscore\n'},
        [{"set": "MSRpar.test", "score": 4.4, "a": 'A "b', "b": "A c"}],
    ),
    "labelled_pairs": (
        {"dev.tsv": "sentence1\tsentence2\tgold_label\nA b.\tA c.\tneutral\n"},
        [{"a": "A b.", "b": "A c.", "label": "neutral"}],
    ),
    "paws": (
        {"paws.tsv": "1\tThe `` A '' b\tA b\t0\r\n2\tA\tB\t1\r\n3\tA\tB\r\n4\tA\tB\tlabel\r\n"},
        [{"a": 'The " A " b', "b": "A b", "label": "different"}, {"a": "A", "b": "B", "label": "same"}],
    ),
    "breaking_nli": (
        {"b.zip": zipped("data/dataset.jsonl", NLI)},
        [{"a": KEPT, "b": "Other .", "label": "neutral", "kind": "colors"}],
    ),
    "parallel_files": (
        {"s1.dev": "A . \n", "s2.dev": "B\n", "labels.dev": "neutral\n"},
        [{"a": "A . ", "b": "B", "label": "neutral"}],
    ),
    "negations": (
        {"n.tsv": "sentence\tnegated\nIt is.\tIt is not.\n"},
        [{"a": "It is.", "b": "It is not.", "label": "different"}],
    ),
    "antonyms": ({"w.txt": "open close\nalone\n"}, [{"a": "open", "b": "close", "label": "opposite"}]),
    "synonyms": ({"synonyms.txt": "big large\n"}, [{"a": "big", "b": "large", "label": "same"}]),
    "abbreviations": (
        {"a.json": json.dumps([ABBREVIATIONS])},
        [{"word": "index", "abbr": "idx", "degree": "fine"}],
    ),
}


@pytest.fixture(scope="module")
def converted(new_host, tmp_path_factory):
    """Publish the files of all `CASES` in a local repository; fetch and convert them by the command.

    Each case is a data set of its own. Return the folder of the converted files, and the command's standard
    error.
    """
    host, folder, sets = new_host(), tmp_path_factory.mktemp("converted"), []
    published = [item for files, _ in CASES.values() for item in files.items()]
    assert len(dict(published)) == len(published)
    host.publish("owner/all", dict(published))
    for name, (files, rows) in CASES.items():
        paths = ["f/*.txt"] if name == "comment_files" else list(files)
        part = {"repository": "owner/all", "paths": paths, "reader": name}
        sets.append(a_set(name, [a_file(f"{name}.jsonl", [part], digest(packed_lines(rows)))]))
    table = write_catalog(folder / "sets.yaml", host, sets)
    known = ["--catalog", table, "--root", folder / "data", "--host", host.folder]
    done = fetch(*known)
    if done.returncode == 0:
        return folder / "data", done.stderr
    each = [fetch(name, *known).stderr for name in CASES]  # after the other sets exist
    return folder / "data", "".join(each)


@pytest.mark.parametrize("name", CASES)
def test_reader_converts_the_published_files(converted, name):
    folder, messages = converted
    file = folder / f"{name}.jsonl"
    assert file.exists(), messages
    assert [json.loads(line) for line in file.read_text(encoding="utf-8").split("\n")[:-1]] == CASES[name][1]


def test_every_reader_has_a_case():
    assert CASES.keys() == READERS.keys()
