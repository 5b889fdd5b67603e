"""Groups of training texts for distillation, in which a student learns its teachers' embeddings.

A group is a text, a pair of texts, or a text with variants that rules make from it. The variants are a
rewording with the same meaning, and a text with a changed meaning. All texts in a group are used in the same
optimizer step, so that the student learns to compare them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from simllm.errors import InputError
from simllm.evaluation.contrast_word_pairs import deciding_word_pairs
from simllm.io import output_file
from simllm.io.output_folder import OutputFolder
from simllm.io.read_json_lines import text_under
from simllm.io.read_lines import lines
from simllm.perturb.summaries import lexicon
from simllm.perturb.summaries.meaning_changing_edits import change
from simllm.perturb.summaries.random_rewording import reword
from simllm.text_cleaning import clean
from train.corpus import decontaminate
from train.corpus.select_rows import select_rows
from train.corpus.sources import match_files
from train.corpus.text_hash import identity
from train.distill.config import ImitationConfig, TextsConfig
from train.runtime.distributed import World
from train.runtime.run_folder import short_hash
from train.runtime.training_log_and_tensorboard import print_progress

Group = tuple[str, ...]
GROUPS, LINES = "groups.jsonl", "texts.txt"


@dataclass(frozen=True)
class StoredTexts:
    """The texts whose embeddings an encoder learns from its teachers, and the folder that stores the texts.

    Attributes:
        groups: The texts in groups. Texts in one group, such as a text and its rewording, are used in the
            same update (optimizer step).
        folder: The folder that stores the texts. It may have more texts than `groups`, because the setting
            `max_texts` limits `groups`.
        sha256: A SHA-256 of all texts in the folder.
    """

    groups: list[Group]
    folder: Path
    sha256: str

    @property
    def flat(self) -> list[str]:
        """All texts in one list, in the order of `groups`.

        A group is a tuple of texts that belong together, such as a text and its rewording.
        """
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
    """Collect the training texts of a distillation, or load them if this run has collected them before.

    The encoder learns the embeddings that larger encoders give to these texts.

    Args:
        config: The settings for learning these embeddings, such as the files of texts.
        out: The folder of the run.
        world: The processes of the run.
        exclude: Files with text pairs that people have rated. Their texts are left out, so that these files
            can be used to evaluate the encoder.
        hold_out_contrast: Whether to hold out the word pairs of the contrast set. In this test set, many
            texts differ by a pair of words, such as "attaches" and "detaches". Rules make variants of some
            training texts, such as rewordings. If true, the rules never replace one word of a pair by the
            other. Then the variants do not teach the encoder these word pairs.
        seed: Seed for choosing texts and making variants.

    Raises:
        InputError: A file of texts cannot be read, or no text is left.
    """
    held_out = frozenset(deciding_word_pairs() if hold_out_contrast else ())
    choice = short_hash([asdict(source) for source in config.texts], list(exclude), sorted(held_out), seed)
    folder = out / "texts" / choice
    groups, flat = world.first_then_others(
        lambda: flatten(gather(config.texts, exclude, held_out, seed, folder), config.max_texts)
    )
    if world.is_first:
        print_progress(f"  {len(groups):,} groups, {len(flat):,} texts")
    return StoredTexts(groups, folder, digest(folder))


def gather(
    sources: Sequence[TextsConfig], exclude: Sequence[str], held_out: frozenset[tuple[str, str]], seed: int,
    folder: Path,
) -> list[Group]:  # fmt: skip
    """Read, clean and shuffle the groups of texts from all sources, or load the stored result.

    A group is a text, a pair of texts, or a text with variants that rules make from it. The variants are a
    rewording with the same meaning, and a text with a changed meaning.

    Args:
        sources: Settings for each source. A group is left out if all its texts occurred in earlier groups.
        exclude: Files or glob patterns of evaluation data (rated text pairs). A group is left out if one of
            its texts is in these files.
        held_out: Pairs of words that are kept for evaluation, such as "open" and "close". The rules never
            replace one word of a pair by the other.
        seed: Seed for the order of the groups, for choosing groups if a source has a limit, and for the
            variants.
        folder: The folder of the result. It has two files: `groups.jsonl` with a group on each line, as a
            JSON list, and `texts.txt` with one text on each line. If `groups.jsonl` exists, it is loaded, and
            must be from the same arguments.

    Returns:
        The groups, in random order.

    Raises:
        InputError: A source is missing, has no texts, or has only excluded texts.
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
                raise InputError(f"texts {source.source!r}: no text is left")
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
        with OutputFolder(folder, "training texts").replacing(keep_edits=False) as partial:
            output_file.write(partial / LINES, "".join(f"{text}\n" for group in mixed for text in group))
            output_file.write(partial / GROUPS, "".join(json.dumps(group) + "\n" for group in mixed))
    return [tuple(json.loads(line)) for _, line in lines(file)]


def _read(source: TextsConfig) -> Iterator[Group]:
    """Read training texts from one source (one or several files), and yield the cleaned texts in groups.

    A group has the texts that are used in the same optimizer step. If `source.fields` names fields of JSON
    lines, the texts in these fields of a line are a group. Otherwise, each line of plain text is a group with
    one text. A group with an empty text, or with a text of more than `source.max_words` words, is left out.
    """
    if source.fields:
        groups = (
            tuple(clean(text_under(row, name, where)) for name in source.fields)
            for where, row in select_rows(source.source, source.only, source.leave_out)
        )
    else:
        groups = ((clean(text),) for file in match_files(source.source) for _, text in lines(file))
    for group in groups:
        if all(text and text.count(" ") < source.max_words for text in group):
            yield group


def _all_seen(group: Group, seen: set[bytes]) -> bool:
    """Return whether all texts of a group occurred in earlier groups, and remember the texts of this group.

    Args:
        group: The texts of the group.
        seen: The hashes of the texts in earlier groups. The hashes of this group's texts are added.
    """
    keys = {identity(text) for text in group}
    seen_before = keys <= seen
    seen |= keys
    return seen_before


def _with_variants(group: Group, words: lexicon.Lexicon, random: np.random.Generator) -> Group:
    """Add two texts to a group of texts: a rewording of its first text, and one with a changed meaning.

    A group has the training texts that are used in the same optimizer step, such as a single text or a pair
    of texts. Rules make the two variants of the first text. A variant that the rules cannot make is left out.

    Args:
        group: The texts of the group.
        words: The word lists for the rules.
        random: The random generator.

    Returns:
        The texts of the group, followed by the variants.
    """
    text = group[0]
    changed = change(text, words, random)
    variants = (reword(text, words, random), *([changed[1]] if changed else []))
    return tuple(dict.fromkeys((*group, *variants)))


def flatten(groups: Sequence[Group], limit: int | None) -> tuple[list[Group], list[str]]:
    """Take whole groups of texts from the start of a list, up to `limit` texts in total.

    A group is a tuple of texts that belong together, such as a text and its rewording. The first group that
    would exceed the limit is left out, and so are all groups after it.

    Args:
        groups: Groups of texts.
        limit: The largest number of texts; None: all groups are taken.

    Returns:
        The taken groups, and all texts of these groups in the same order.

    Raises:
        InputError: The first group alone has more than `limit` texts.
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


def digest(folder: Path) -> str:
    """Compute the SHA-256 of the stored training texts, to recognize data that was made from the same texts.

    Args:
        folder: The folder in which `gather` stored the training texts, in the file `groups.jsonl`.
    """
    with (folder / GROUPS).open("rb") as data:
        return hashlib.file_digest(data, "sha256").hexdigest()
