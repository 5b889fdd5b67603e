/** Word contributions: what each word adds to a score, and the word of the other text that matches it. */

import { cosine, dot, mean, norm, sum } from "./vector_math.js";

/**
 * Split a score into the contributions of the words of each text.
 *
 * @param {Tokenizer} tokenizer
 * @param {Comparison} comparison Of two texts that are not empty.
 * @returns {{text: string, contribution: number, match: string, similarity: number}[][]} The words of the
 *     candidate, and those of the reference. `match` is the most similar word of the other text.
 */
export function wordContributions(tokenizer, { candidate, reference }) {
  const texts = [candidate, reference];
  const spelled = texts.map((text) => tokenizer.wordsOf(text.ids.slice(1, -1)));
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

/** Round to twelve digits, so that rounding errors do not break ties. */
function round(number) {
  return Math.round(number * 1e12) / 1e12;
}
