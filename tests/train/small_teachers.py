"""Small teachers with random weights, in the format of sentence-transformers."""

import json
import re
from collections import Counter

import torch
from tokenizers import BertWordPieceTokenizer
from transformers import BertConfig, BertModel, MPNetConfig, MPNetModel

SPECIAL = {
    "bert": ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"],
    "mpnet": ["<s>", "<pad>", "</s>", "[UNK]", "<mask>"],
}
WIDTH = {"bert": 32, "mpnet": 24}


def vocabulary(special, texts):
    """Return a WordPiece vocabulary of 300 pieces: special tokens, characters and the most frequent words.

    The trainer in the library `tokenizers` is not used, because its pieces differ from run to run.
    """
    words = Counter(re.findall(r"\w+", " ".join(texts).lower()))
    characters = sorted(set("".join(words)))
    frequent = sorted((word for word in words if len(word) > 1), key=lambda word: (-words[word], word))
    pieces = [*special, *characters, *(f"##{character}" for character in characters), *frequent]
    return {piece: i for i, piece in enumerate(pieces[:300])}


def make_teacher(folder, kind, texts):
    """Save a model with random weights as sentence-transformers does, with mean pooling."""
    special = SPECIAL[kind]
    begin, end = (special[2], special[3]) if kind == "bert" else (special[0], special[2])
    pieces = vocabulary(special, texts)
    tokenizer = BertWordPieceTokenizer(pieces, cls_token=begin, sep_token=end, lowercase=True)
    values = json.loads(tokenizer.to_str())
    values["post_processor"] = {
        "type": "BertProcessing",
        "cls": [begin, special.index(begin)],
        "sep": [end, special.index(end)],
    }
    torch.manual_seed(7)
    shape = {
        "vocab_size": 300,
        "hidden_size": WIDTH[kind],
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "intermediate_size": 48,
        "initializer_range": 0.3,
    }
    if kind == "bert":
        model = BertModel(BertConfig(**shape, max_position_embeddings=70), add_pooling_layer=False)
        names = {"cls_token": "[CLS]", "sep_token": "[SEP]", "pad_token": "[PAD]"}
    else:
        model = MPNetModel(MPNetConfig(**shape, max_position_embeddings=72), add_pooling_layer=False)
        names = {"cls_token": "<s>", "sep_token": "</s>", "pad_token": "<pad>"}
    model.save_pretrained(folder)
    (folder / "tokenizer.json").write_text(json.dumps(values))
    names |= {"tokenizer_class": "PreTrainedTokenizerFast", "unk_token": "[UNK]", "model_max_length": 70}
    (folder / "tokenizer_config.json").write_text(json.dumps(names))
    (folder / "1_Pooling").mkdir()
    pooling = {"word_embedding_dimension": WIDTH[kind], "pooling_mode_mean_tokens": True}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling | {"pooling_mode_cls_token": False}))
    parts = [("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Normalize", "Normalize")]
    modules = [
        {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{name}"}
        for i, (path, name) in enumerate(parts)
    ]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "sentence_bert_config.json").write_text('{"max_seq_length": 70, "do_lower_case": false}')
    return folder
