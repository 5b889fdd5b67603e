"""A dictionary from the names of all readers to the readers.

A reader is a function that converts fetched files of a data set into rows (JSON objects). Its name in the
dictionary is the name of the function.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from train.data import corpus_readers, meaning_readers, pair_readers, rated_readers, similarity_readers
from train.data.fetched_file import Row, SourceFile

Reader = Callable[[Iterable[SourceFile]], Iterator[Row]]

READERS: dict[str, Reader] = {
    reader.__name__: reader
    for reader in (
        corpus_readers.lines,
        corpus_readers.lines_with_id,
        corpus_readers.titles,
        corpus_readers.comment_files,
        corpus_readers.docstrings,
        corpus_readers.conala,
        corpus_readers.cosqa,
        corpus_readers.numbered_lists,
        pair_readers.descriptions_by_id,
        pair_readers.descriptions_by_command,
        pair_readers.rewritten_intents,
        pair_readers.generated_summaries,
        rated_readers.haque,
        rated_readers.shen,
        rated_readers.conala_grades,
        rated_readers.commit_messages,
        rated_readers.texts_of_workbook,
        similarity_readers.stsb,
        similarity_readers.sick,
        similarity_readers.semeval,
        meaning_readers.labelled_pairs,
        meaning_readers.paws,
        meaning_readers.breaking_nli,
        meaning_readers.parallel_files,
        meaning_readers.negations,
        meaning_readers.antonyms,
        meaning_readers.synonyms,
        meaning_readers.abbreviations,
    )
}
