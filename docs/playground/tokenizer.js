/** The tokenizer of `tokenizer.json`: cleaning, then byte-pair encoding (BPE) of each word. */

import { makeNormalizer } from "./normalizer.js";

export const BOUNDARY = "▁"; // first character of a token that begins a word
const [START, END, UNKNOWN] = [0, 2, 3]; // ids of <s>, </s> and <unk>

export class Tokenizer {
  /**
   * @param {object} json The content of `tokenizer.json`.
   * @param {object} settings The content of `settings.json`.
   */
  constructor(json, settings) {
    const { type, vocab, merges } = json.model;
    if (type !== "BPE" || json.pre_tokenizer.type !== "Metaspace") {
      throw new Error("tokenizer.json: expected BPE over words");
    }
    this.settings = settings;
    this.clean = makeNormalizer(json.normalizer, settings.unicode);
    this.ids = new Map(Object.entries(vocab));
    this.tokens = Object.keys(vocab).sort((a, b) => vocab[a] - vocab[b]);
    this.ranks = new Map(merges.map(([left, right], rank) => [`${left} ${right}`, rank]));
    this.words = new Map(); // the ids of each word met so far
  }

  /**
   * Clean and tokenize a text.
   *
   * @param {string} text
   * @returns {{ids: number[], truncated: boolean}} The token ids, `<s>` and `</s>` included.
   */
  encode(text) {
    const { max_length: longest, max_characters: most } = this.settings;
    const start = firstCharacters(text, most);
    const cleaned = this.clean(start);
    const ids = cleaned ? cleaned.split(" ").flatMap((word) => this.encodeWord(word)) : [];
    const truncated = ids.length + 2 > longest || start.length < text.length;
    return { ids: [START, ...ids.slice(0, longest - 2), END], truncated };
  }

  /** Return the token ids of a word, without special tokens. */
  encodeWord(word) {
    if (!this.words.has(word)) {
      this.words.set(word, this.merge([BOUNDARY, ...word]).map((token) => this.ids.get(token) ?? UNKNOWN));
    }
    return this.words.get(word);
  }

  /** Merge neighbouring pieces, always the pair of the lowest rank, until no pair can be merged. */
  merge(pieces) {
    const rank = (i) => this.ranks.get(`${pieces[i]} ${pieces[i + 1]}`) ?? Infinity;
    const ranks = pieces.slice(1).map((_, i) => rank(i)); // of each piece and the next one
    while (ranks.length) {
      let best = 0;
      for (let i = 1; i < ranks.length; i++) if (ranks[i] < ranks[best]) best = i;
      if (ranks[best] === Infinity) break;
      pieces.splice(best, 2, pieces[best] + pieces[best + 1]);
      ranks.splice(best, 1);
      if (best > 0) ranks[best - 1] = rank(best - 1);
      if (best < ranks.length) ranks[best] = rank(best);
    }
    return pieces;
  }

  /**
   * Join the tokens of a text into words.
   *
   * @param {number[]} ids The token ids, without `<s>` and `</s>`.
   * @returns {{text: string, start: number, end: number}[]} Each word, and the range of its tokens.
   */
  wordsOf(ids) {
    const words = [];
    ids.forEach((id, i) => {
      const token = this.tokens[id];
      if (i === 0 || token.startsWith(BOUNDARY)) words.push({ text: "", start: i, end: i });
      const word = words.at(-1);
      word.text += token.replaceAll(BOUNDARY, "");
      word.end = i + 1;
    });
    return words;
  }
}

/** Return the first `most` characters (code points) of a text; lone surrogates become U+FFFD. */
function firstCharacters(text, most) {
  if (text.length <= most) return text.toWellFormed();
  let end = 0;
  for (let count = 0; count < most && end < text.length; count++) {
    end += text.codePointAt(end) > 0xffff ? 2 : 1;
  }
  return text.slice(0, end).toWellFormed();
}
