/** The metric: loads the model, scores pairs of texts, and explains scores as `simllm explain` does. */

import * as ort from "./vendor/ort.wasm.bundle.min.mjs";
import { Tokenizer } from "./tokenizer.js";

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
    const { slope, intercept } = this.settings.meaning;
    return 1 / (1 + Math.exp(-(slope * logits.data[0] + intercept)));
  }

  /**
   * Split a score into the contributions of the words of each text.
   *
   * @param {Comparison} comparison Of two texts that are not empty.
   * @returns {{text: string, contribution: number, match: string, similarity: number}[][]} The words of the
   *     candidate, and those of the reference. `match` is the most similar word of the other text.
   */
  explain({ candidate, reference }) {
    const texts = [candidate, reference];
    const spelled = texts.map((text) => this.tokenizer.wordsOf(text.ids.slice(1, -1)));
    const tokens = texts.map((text) => text.states.slice(1, -1));
    const scale = norm(candidate.mean) * norm(reference.mean);
    const means = spelled.map((found, side) =>
      found.map(({ start, end }) => mean(tokens[side].slice(start, end))),
    );
    return spelled.map((found, side) =>
      found.map(({ text, start, end }, i) => {
        const shares = tokens[side].slice(start, end).map((state) => dot(state, texts[1 - side].mean));
        const similarities = means[1 - side].map((other) => round(cosine(means[side][i], other)));
        const similarity = Math.max(...similarities);
        return {
          text,
          contribution: sum(shares) / (texts[side].ids.length * scale),
          match: spelled[1 - side][similarities.indexOf(similarity)].text,
          similarity,
        };
      }),
    );
  }

  /**
   * Find the words that change the meaning: without them, the texts more probably mean the same.
   *
   * Each word is left out, alone or together with its match; the larger of the two probabilities counts.
   * Punctuation is never found.
   *
   * @param {Comparison} comparison Of two similar texts.
   * @param {function(): boolean} isWanted Whether the result is still wanted; asked before each word.
   * @returns {Promise<string[]|null>} Up to two words of each text; null if the result is not wanted any more.
   */
  async changingWords(comparison, isWanted) {
    const sides = this.explain(comparison);
    const texts = sides.map((side) => side.map((word) => word.text));
    const without = (side, place) => this.read(texts[side].filter((_, i) => i !== place).join(" "));
    const chosen = [];
    for (const side of [0, 1]) {
      const gains = [];
      for (const [place, word] of sides[side].entries()) {
        await new Promise((resume) => setTimeout(resume)); // lets the page react
        if (!isWanted()) return null;
        if (/^\p{P}*$/u.test(word.text)) {
          gains.push(-Infinity);
          continue;
        }
        const rest = await without(side, place);
        const others = [await without(1 - side, -1), await without(1 - side, texts[1 - side].indexOf(word.match))];
        const same = [];
        for (const other of others) same.push(await this.sameWithout(rest, other));
        gains.push(Math.max(...same) - comparison.same);
      }
      const best = [...gains.keys()].sort((i, j) => gains[j] - gains[i]).slice(0, 2);
      const least = Math.max(this.settings.gain, gains[best[0]] / 2);
      chosen.push(...best.filter((i) => gains[i] > least).map((i) => texts[side][i]));
    }
    const found = [...new Set(chosen)];
    const inOneText = found.filter((word) => !texts.every((words) => words.includes(word)));
    return inOneText.length ? inOneText : found;
  }

  /** Return the probability of the same meaning for two texts that may be empty. */
  async sameWithout(a, b) {
    const empty = a.ids.length === EMPTY || b.ids.length === EMPTY;
    return empty ? Number(a.raw === b.raw) : this.probability(a, b);
  }
}

/** Fetch a file that lies beside the page. */
async function request(name) {
  const response = await fetch(name);
  if (!response.ok) throw new Error(`${name}: ${response.status} ${response.statusText}`);
  return response;
}

/**
 * Download files one after the other.
 *
 * @param {Object<string, number>} sizes The size of each file in bytes.
 * @param {function(number, number): void} onProgress
 * @returns {Promise<Object<string, Uint8Array>>} The content of each file.
 */
async function download(sizes, onProgress) {
  const all = sum(Object.values(sizes));
  const files = {};
  let done = 0;
  for (const name of Object.keys(sizes)) {
    const chunks = [];
    const reader = (await request(name)).body.getReader();
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      chunks.push(part.value);
      done += part.value.length;
      onProgress(done, all);
    }
    files[name] = new Uint8Array(await new Blob(chunks).arrayBuffer());
  }
  return files;
}

/** Split a text at white space. */
function words(text) {
  return text.trim().split(/\s+/);
}

function sum(numbers) {
  return numbers.reduce((total, number) => total + number, 0);
}

function dot(a, b) {
  let total = 0;
  for (let i = 0; i < a.length; i++) total += a[i] * b[i];
  return total;
}

function norm(vector) {
  return Math.sqrt(dot(vector, vector));
}

function cosine(a, b) {
  const scale = Math.sqrt(dot(a, a) * dot(b, b));
  return scale ? Math.min(1, Math.max(-1, dot(a, b) / scale)) : 0;
}

/** Return the mean of vectors. */
function mean(vectors) {
  const total = new Float64Array(vectors[0].length);
  for (const vector of vectors) for (let i = 0; i < total.length; i++) total[i] += vector[i];
  return total.map((value) => value / vectors.length);
}

/** Round to twelve digits, so that rounding errors do not break ties. */
function round(number) {
  return Math.round(number * 1e12) / 1e12;
}

/** Return the percentage of random pairs that score lower, given their scores at evenly spaced percentiles. */
function percentile(score, random) {
  const above = random.findIndex((knot) => knot > score);
  if (above <= 0) return above < 0 ? 100 : 0;
  const low = random[above - 1];
  return ((above - 1 + (score - low) / (random[above] - low)) / (random.length - 1)) * 100;
}
