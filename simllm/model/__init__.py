"""The encoder, its tokenizer, and the model folder that stores them.

The modules share these words and letters:

- The encoder turns token ids into hidden states, one vector for each token. A pooling turns the hidden states
  of a text into one embedding. A similarity compares two embeddings.
- The meaning head is a small network that reads hidden states of two texts and predicts whether the texts
  have the same meaning. Its output is the logit of this probability. Its first layer, `project`, needs one
  text only, and is therefore applied once for each text.
- A calibration maps the score of a text pair to a percentile among random pairs.
- An engine runs encoder and meaning head, with torch in one of three modes, or with ONNX Runtime.
- A mask is true for tokens that are not padding.
- A hash is the first 12 hex digits of a SHA-256.
- Shapes: B texts in a batch; L tokens in a text, padding included (M in the other text of a pair); D hidden
  size of the encoder; H attention heads; P text pairs; W width of the meaning head. Hidden states of the
  encoder's N last layers stand side by side, (B, L, N * D), those of the last layer at the end.
"""
