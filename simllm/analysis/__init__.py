"""Tools built on the metric, such as comparison of summarizers, explanation of scores, and reports.

Terms:

- A *system* is a source of candidates, such as a summarizer. An *item* has a reference, and a candidate from
  each system.
- The *match* of a word is the most similar word of the other text.
- A *changing word* makes a candidate and its reference differ in meaning: without the word, the probability
  that both texts have the same meaning is clearly higher.
- A *shard* is an input file of text pairs with the path of its table of scores. An *actor* is a worker
  process of a Ray cluster.
- A *completion* is what a model writes after a prompt; its score is its *reward*.
- The *playground* is a web page that scores texts in the browser.
"""
