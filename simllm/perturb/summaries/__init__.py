"""Rule-based edits of code summaries; some keep the meaning, and others change it.

In training, a reworded summary with the same meaning is a positive example, and a summary with a changed
meaning is a hard negative. The robustness evaluation measures how edits change a metric's scores.

- All functions expect texts that `simllm.text_cleaning.clean` has cleaned: words and punctuation marks are
  separated by spaces. `words` is the list of a text's words; `start` and `end` are indices in that list, and
  `end` is exclusive.
- An edit function, such as `negations`, makes one kind of edit: it yields an edited text for each place where
  the edit is possible. A grammatical rule, such as `passive`, takes words instead; it returns the changed
  words, or None if the rule does not fit. Tables such as `KINDS` give all of them the same arguments.
- The lexicon has the word lists and the forms of verbs and nouns (see `Lexicon`). Words of one category with
  different meanings, such as "row" and "column", are neighbours.
- Held-out word pairs, such as ("open", "close"), are kept for tests and left out of training data: no edit
  replaces one word of such a pair by the other, in any form.
- A slot, such as `{1}` in the phrase "returns the {1}", stands for one to eight words (see
  `Template`).
- A noun phrase, such as "the file name", has an optional determiner and then a few other words.
"""
