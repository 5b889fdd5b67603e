"""The encoder, its tokenizer, and the model folder that stores them."""
