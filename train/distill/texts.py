"""Groups of training texts for distillation."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from simllm.errors import InputError
from simllm.evaluation.contrast import deciding_word_pairs
from simllm.io import output_file
from simllm.io.output_folder import OutputFolder
from simllm.io.reading import read_lines, text_under
from simllm.perturb.summaries import lexicon
from simllm.perturb.summaries.meaning_changes import change
from simllm.perturb.summaries.rewording import reword
from simllm.text_cleaning import clean
from train.corpus import decontaminate
from train.corpus.comments import split_sentences
from train.corpus.deduplicate import identity
from train.corpus.sources import match_files, select_rows
from train.distill.config import ImitationConfig, TextsConfig
from train.runtime.distributed import World
from train.runtime.log import print_progress
from train.runtime.training_run import short_hash

Group = tuple[str, ...]
GROUPS, LINES = "groups.jsonl", "texts.txt"


@dataclass(frozen=True)
class StoredTexts:
    """The groups of a run, and the folder that stores them.

    Attributes:
        groups: As many as the setting `max_texts` allows; the folder may have more.
        sha256: SHA-256 of all groups in the folder, to recognize data that was made from the same texts.
    """

    groups: list[Group]
    folder: Path
    sha256: str

    @property
    def flat(self) -> list[str]:
        """All texts in one list, in the order of `groups`."""
        return [text for group in self.groups for text in group]


def collect_texts(
    config: ImitationConfig,
    out: Path,
    world: World,
    *,
    exclude: Sequence[str],
    hold_out_contrast: bool,
    seed: int,
) -> StoredTexts:
    """Collect the groups of a run, or load those that the run folder `out` has already.

    Args:
        config: The sources, and the largest number of texts.
        out: The run folder.
        world: The processes of the run.
        exclude: Rated files whose texts are left out, so that they can evaluate the encoder.
        hold_out_contrast: Whether the rules for variants never replace a held-out word by its counterpart.
        seed: Seed for choosing groups, their order and their variants.
    """
    held_out = frozenset(deciding_word_pairs() if hold_out_contrast else ())
    choice = short_hash([asdict(source) for source in config.texts], list(exclude), sorted(held_out), seed)
    folder = out / "texts" / choice
    # Only the first process writes the files; the others load them.
    groups, flat = world.first_then_others(
        lambda: flatten(gather(config.texts, exclude, held_out, seed, folder), config.max_texts)
    )
    if world.is_first:
        print_progress(f"  {len(groups):,} groups, {len(flat):,} texts")
    return StoredTexts(groups, folder, output_file.sha256_of(folder / GROUPS))


def gather(
    sources: Sequence[TextsConfig], exclude: Sequence[str], held_out: frozenset[tuple[str, str]], seed: int,
    folder: Path,
) -> list[Group]:  # fmt: skip
    """Read, clean and shuffle the groups of all sources, or load the stored result.

    `folder` gets `groups.jsonl` with a group on each line, as a JSON list, and `texts.txt` with a text on
    each line. An existing `groups.jsonl` must be from the same arguments.
    """
    file = folder / GROUPS
    if not file.is_file():
        random = np.random.default_rng(seed)
        excluded, words = decontaminate.read_excluded(exclude), lexicon.load(held_out)
        seen: set[bytes] = set()
        groups: list[Group] = []
        for source in sources:
            new_groups = [group for group in _read(source) if not _all_seen(group, seen)]
            if not new_groups:
                fields = f" in the fields {', '.join(source.fields)}" if source.fields else ""
                raise InputError(f"texts {source.source!r}: no text is left{fields}")
            order = random.permutation(len(new_groups))
            kept = 0
            for number in order:
                if kept == source.limit:
                    break
                group = new_groups[number]
                if any(text in excluded for text in group):
                    continue
                if random.random() < source.variants:
                    variants = _with_variants(group, words, random)
                    group = tuple(text for text in variants if text not in excluded)
                groups.append(group)
                kept += 1
            if not kept:
                raise InputError(f"texts {source.source!r}: all texts are excluded")
        mixed = [groups[number] for number in random.permutation(len(groups))]
        # Both files appear at once, so that an interrupted run leaves no half of them.
        with OutputFolder(folder, "training texts").replacing(keep_edits=False) as partial:
            output_file.write(partial / LINES, "".join(f"{text}\n" for group in mixed for text in group))
            output_file.write(partial / GROUPS, "".join(json.dumps(group) + "\n" for group in mixed))
    return [tuple(json.loads(line)) for _, line in read_lines(file)]


def _read(source: TextsConfig) -> Iterator[Group]:
    """Yield the groups of one source, cleaned: the fields of a JSON line, a line of plain text, or a sentence
    of one of them. JSON lines that lack a field are left out.
    """
    if source.fields:
        raw = (
            tuple(text_under(row, name, where) for name in source.fields)
            for where, row in select_rows(source.source, source.only, source.leave_out)
            if all(name in row for name in source.fields)
        )
    else:
        raw = ((text,) for file in match_files(source.source) for _, text in read_lines(file))
    if source.sentences:
        raw = ((sentence,) for (text,) in raw for sentence in split_sentences(text))
    for group in (tuple(map(clean, texts)) for texts in raw):
        if all(text and text.count(" ") < source.max_words for text in group):
            yield group


def _all_seen(group: Group, seen: set[bytes]) -> bool:
    """Return whether all texts of a group occurred in earlier groups, and add their hashes to `seen`."""
    keys = {identity(text) for text in group}
    seen_before = keys <= seen
    seen |= keys
    return seen_before


def _with_variants(group: Group, words: lexicon.Lexicon, random: np.random.Generator) -> Group:
    """Add the variants of the first text of a group, as far as the rules can make them."""
    text = group[0]
    changed = change(text, words, random)
    variants = (reword(text, words, random), *([changed[1]] if changed else []))
    return tuple(dict.fromkeys((*group, *variants)))


def flatten(groups: Sequence[Group], limit: int | None) -> tuple[list[Group], list[str]]:
    """Take whole groups from the start of a list, up to `limit` texts in total, and list their texts.

    Raises InputError if the first group alone is larger.
    """
    kept: list[Group] = []
    flat: list[str] = []
    for group in groups:
        if limit is not None and len(flat) + len(group) > limit:
            break
        kept.append(group)
        flat += group
    if not kept:
        raise InputError(f"max_texts {limit}: the first group has {len(groups[0])} texts")
    return kept, flat
