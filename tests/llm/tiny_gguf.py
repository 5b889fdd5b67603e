"""A tiny language model in a GGUF file: two layers with random weights, and a token for each byte."""

import gguf
import numpy as np

_WIDTH, _HEADS, _LAYERS, _CONTEXT = 32, 2, 2, 512
_TEMPLATE = "{% for message in messages %}{{ message.content }}{% endfor %}"


def _byte_characters():
    """Return the 256 characters that stand for bytes in a byte-level vocabulary, as in GPT-2."""
    kept = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in kept]
    characters = {byte: chr(byte) for byte in kept} | {byte: chr(256 + n) for n, byte in enumerate(others)}
    return [characters[byte] for byte in range(256)]


def write_tiny_gguf(file):
    """Write the model; return its file."""
    tokens = [*_byte_characters(), "<s>", "</s>"]
    random = np.random.default_rng(0)

    def matrix(rows, columns):
        return random.normal(0, 0.1, (rows, columns)).astype(np.float32)

    writer = gguf.GGUFWriter(str(file), "llama")
    writer.add_context_length(_CONTEXT)
    writer.add_embedding_length(_WIDTH)
    writer.add_block_count(_LAYERS)
    writer.add_feed_forward_length(2 * _WIDTH)
    writer.add_head_count(_HEADS)
    writer.add_head_count_kv(_HEADS)
    writer.add_rope_dimension_count(_WIDTH // _HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    writer.add_token_types([gguf.TokenType.NORMAL] * 256 + [gguf.TokenType.CONTROL] * 2)
    # llama.cpp asks for merges; these two letters never stand together in a test.
    writer.add_token_merges(["z q"])
    writer.add_bos_token_id(256)
    writer.add_eos_token_id(257)
    writer.add_add_bos_token(False)
    writer.add_chat_template(_TEMPLATE)
    writer.add_tensor("token_embd.weight", matrix(len(tokens), _WIDTH))
    writer.add_tensor("output_norm.weight", np.ones(_WIDTH, np.float32))
    writer.add_tensor("output.weight", matrix(len(tokens), _WIDTH))
    for layer in range(_LAYERS):
        for name in ("attn_norm", "ffn_norm"):
            writer.add_tensor(f"blk.{layer}.{name}.weight", np.ones(_WIDTH, np.float32))
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            writer.add_tensor(f"blk.{layer}.{name}.weight", matrix(_WIDTH, _WIDTH))
        for name in ("ffn_gate", "ffn_up"):
            writer.add_tensor(f"blk.{layer}.{name}.weight", matrix(2 * _WIDTH, _WIDTH))
        writer.add_tensor(f"blk.{layer}.ffn_down.weight", matrix(_WIDTH, 2 * _WIDTH))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return file
