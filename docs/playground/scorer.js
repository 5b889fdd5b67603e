/** The metric: it loads the model, reads texts, and scores pairs of texts as `simllm score` does. */

import * as ort from "./vendor/ort.wasm.bundle.min.mjs";
import { changingWords } from "./changing_words_search.js";
import { download, request } from "./model_download.js";
import { Tokenizer } from "./tokenizer.js";
import { cosine, mean } from "./vector_math.js";
import { wordContributions } from "./word_contributions.js";

ort.env.wasm.numThreads = 1; // threads need headers that a plain file server does not send
const RUNTIME = "vendor/ort-wasm-simd-threaded.wasm";
const REMEMBERED = 64; // texts whose states are kept: somebody who types changes only one text
const EMPTY = 2; // tokens of an empty text: <s> and </s>

/**
 * @typedef {object} Text A text that the encoder has read.
 * @property {string} raw The text as it was written.
 * @property {number[]} ids Its token ids.
 * @property {boolean} truncated Whether its end was cut off.
 * @property {Float64Array[]} states The hidden state of each token.
 * @property {Float64Array} mean The mean of the states: the embedding of the text.
 * @property {ort.Tensor} [mapped] The states that the meaning head reads.
 */

/**
 * @typedef {object} Comparison
 * @property {Text} candidate
 * @property {Text} reference
 * @property {number} score From -1 to 1.
 * @property {number|null} same Probability that the texts have the same meaning; null without a meaning head.
 * @property {number|null} percentile Percentage of random pairs that score lower; null without a score scale.
 * @property {boolean} changed Whether the texts are similar but probably differ in meaning.
 * @property {boolean} empty Whether a text is empty after cleaning.
 */

export class Scorer {
  /**
   * Load the model.
   *
   * @param {function(number, number): void} onProgress Called with the bytes loaded so far, and all bytes.
   * @returns {Promise<Scorer>}
   */
  static async load(onProgress) {
    const settings = await (await request("model/settings.json")).json();
    const files = await download(settings.files, onProgress);
    ort.env.wasm.wasmBinary = files[RUNTIME].buffer;
    const tokenizer = JSON.parse(new TextDecoder().decode(files["model/tokenizer.json"]));
    const tokens = { path: "tokens.bin", data: files["model/tokens.bin"] };
    const encoder = await ort.InferenceSession.create(files["model/encoder.onnx"], { externalData: [tokens] });
    const head = settings.meaning && (await ort.InferenceSession.create(files["model/meaning_head.onnx"]));
    const scorer = new Scorer(settings, new Tokenizer(tokenizer, settings), encoder, head);
    await scorer.score("warm up", "the kernels"); // the first run takes far longer than the next ones
    return scorer;
  }

  constructor(settings, tokenizer, encoder, head) {
    Object.assign(this, { settings, tokenizer, encoder, head });
    this.texts = new Map();
    this.last = Promise.resolve(); // a session cannot run twice at once, so runs wait for each other
  }

  /** Run a session after all earlier runs. */
  run(session, inputs) {
    this.last = this.last.catch(() => {}).then(() => session.run(inputs));
    return this.last;
  }

  /**
   * Read a text with the encoder, or remember it.
   *
   * @returns {Promise<Text>}
   */
  async read(raw) {
    if (!this.texts.has(raw)) {
      this.texts.set(raw, await this.encode(raw));
      if (this.texts.size > REMEMBERED) this.texts.delete(this.texts.keys().next().value);
    }
    return this.texts.get(raw);
  }

  /** @returns {Promise<Text>} */
  async encode(raw) {
    const { ids, truncated } = this.tokenizer.encode(raw);
    const input = new ort.Tensor("int64", BigInt64Array.from(ids, BigInt), [1, ids.length]);
    const { states, mapped } = await this.run(this.encoder, { input_ids: input });
    const size = states.dims[2];
    const rows = ids.map((_, i) => Float64Array.from(states.data.subarray(i * size, (i + 1) * size)));
    return { raw, ids, truncated, mapped, states: rows, mean: mean(rows) };
  }

  /** @returns {Promise<Comparison>} */
  async score(candidate, reference) {
    const [a, b] = [await this.read(candidate), await this.read(reference)];
    const empty = a.ids.length === EMPTY || b.ids.length === EMPTY;
    const agree = Number(words(candidate).join(" ") === words(reference).join(" "));
    const score = empty ? agree : cosine(a.mean, b.mean);
    const same = this.head && (empty ? agree : await this.probability(a, b));
    return {
      candidate: a,
      reference: b,
      score,
      same,
      empty,
      percentile: this.settings.random && percentile(score, this.settings.random),
      changed: same !== null && score >= this.settings.similar && same < this.settings.doubtful,
    };
  }

  /** Return the probability that two texts have the same meaning. */
  async probability(a, b) {
    if (a.ids.join() === b.ids.join()) return 1;
    const { logits } = await this.run(this.head, { first: a.mapped, second: b.mapped });
    const { slope, intercept, penalty } = this.settings.meaning;
    const distance = Math.max(0, this.settings.similar - cosine(a.mean, b.mean));
    return 1 / (1 + Math.exp(-(slope * logits.data[0] + intercept - penalty * distance)));
  }

  /** Split a score into the contributions of the words of each text; see `wordContributions`. */
  explain(comparison) {
    return wordContributions(this.tokenizer, comparison);
  }

  /** Find the words that change the meaning; see `changingWords`. */
  changingWords(comparison, isWanted) {
    return changingWords(this, comparison, isWanted);
  }

  /** Return the probability of the same meaning for two texts that may be empty. */
  async sameWithout(a, b) {
    const empty = a.ids.length === EMPTY || b.ids.length === EMPTY;
    return empty ? Number(a.raw === b.raw) : this.probability(a, b);
  }
}

/** Split a text at white space. */
function words(text) {
  return text.trim().split(/\s+/);
}

/** Return the percentage of random pairs that score lower, given their scores at evenly spaced percentiles. */
function percentile(score, random) {
  const above = random.findIndex((knot) => knot > score);
  if (above <= 0) return above < 0 ? 100 : 0;
  const low = random[above - 1];
  return ((above - 1 + (score - low) / (random[above] - low)) / (random.length - 1)) * 100;
}
