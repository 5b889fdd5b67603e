import json

from simllm.evaluation.contrast import deciding_word_pairs

TRIPLE = {"kind": "verb", "form": "balanced"}


def test_deciding_word_pairs_are_words_that_replace_each_other(tmp_path):
    file = tmp_path / "triples.jsonl"
    rows = [
        {
            **TRIPLE,
            "reference": "Opens the file.",
            "rewording": "Unlocks the file.",
            "change": "Closes the file.",
        },
        {
            **TRIPLE,
            "reference": "Send it.",
            "rewording": "Pass on.",
            "change": "Lose it.",
            "form": "adversarial",
        },
        {
            **TRIPLE,
            "reference": "Copies a to b.",
            "rewording": "Copies b from a.",
            "change": "Copies b to a.",
        },
        {
            **TRIPLE,
            "reference": "Is case-blind.",
            "rewording": "Is it case-blind?",
            "change": "Is case-aware.",
        },
    ]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    expected = {("opens", "unlocks"), ("opens", "closes"), ("send", "lose"), ("case-blind", "case-aware")}
    assert deciding_word_pairs(file) - {("to", "from")} == expected
