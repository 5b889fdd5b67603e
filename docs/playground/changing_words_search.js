/** The search for changing words: the words that make two similar texts differ in meaning. */

/**
 * Find the words that change the meaning: without them, the texts more probably mean the same.
 *
 * Each word is left out, alone or together with its match; the larger of the two probabilities counts.
 * Punctuation is never found.
 *
 * @param {Scorer} scorer
 * @param {Comparison} comparison Of two similar texts.
 * @param {function(): boolean} isWanted Whether the result is still wanted; asked before each word.
 * @returns {Promise<string[]|null>} Up to two words of each text; null if the result is not wanted any more.
 */
export async function changingWords(scorer, comparison, isWanted) {
  const sides = scorer.explain(comparison);
  const texts = sides.map((side) => side.map((word) => word.text));
  const without = (side, place) => scorer.read(texts[side].filter((_, i) => i !== place).join(" "));
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
      for (const other of others) same.push(await scorer.sameWithout(rest, other));
      gains.push(Math.max(...same) - comparison.same);
    }
    const best = [...gains.keys()].sort((i, j) => gains[j] - gains[i]).slice(0, 2);
    const least = Math.max(scorer.settings.gain, gains[best[0]] / 2);
    chosen.push(...best.filter((i) => gains[i] > least).map((i) => texts[side][i]));
  }
  const found = [...new Set(chosen)];
  const inOneText = found.filter((word) => !texts.every((words) => words.includes(word)));
  return inOneText.length ? inOneText : found;
}
