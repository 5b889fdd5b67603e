"""The catalog, a table of the real data sets."""

import re

from tests.conftest import ROOT
from tests.train.data.conftest import fetch
from train.data.catalog import CATALOG_FILE, Catalog
from train.runtime.config import load

TABLE = load(Catalog, CATALOG_FILE, [])
FILES = [file for found in TABLE.sets for file in found.files]


def test_every_file_has_a_checksum_and_a_unique_path():
    assert len({file.path for file in FILES}) == len(FILES) == 31
    assert all(re.fullmatch("[0-9a-f]{64}", file.sha256) and file.rows for file in FILES)
    assert len({found.name for found in TABLE.sets}) == len(TABLE.sets)


def test_every_named_repository_is_used():
    used = {part.repository for part in TABLE.evaluation_texts}
    assert used.union(*(file.repositories for file in FILES)) == set(TABLE.commits)


def test_every_corpus_is_cleaned():
    assert {file.cleaning for file in FILES if file.path.startswith("corpus/")} == {"corpus"}


def test_list_shows_restrictive_terms():
    shown = {line.split()[0]: line for line in fetch("--list").stdout.splitlines()[1:]}
    assert shown.keys() == {found.name for found in TABLE.sets}
    for name in ("sick", "semeval_sts", "stsb_en"):
        assert "commercial use" in shown[name]
        assert "forbidden" in shown[name]
    for name in ("python_edinburgh", "python_wan2018"):
        assert "research only" in shown[name]
    for name in ("java_tlc_csn", "funcom_useloss", "commitmsg_mcmd", "unrated_java", "haque2022"):
        assert "no permission to redistribute" in shown[name]
    for name in ("breaking_nli", "cannot_wikifactcheck", "snli_dev", "misc_nl", "general"):
        assert "share-alike" in shown[name]


def test_data_page_lists_every_set_of_the_table():
    page = (ROOT / "docs" / "data.md").read_text(encoding="utf-8")
    for found in TABLE.sets:
        row = next(line for line in page.splitlines() if line.startswith(f"| `{found.name}` |"))
        assert row.endswith(f"| {found.rows:,} | {found.licence} | {found.terms} |")
