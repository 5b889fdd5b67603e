/** The first half of the page: it scores the two texts that the user types, and explains their score. */

import { element, row, show } from "./dom_helpers.js";

const MOST_WORDS = 80; // each word that is left out costs a run of the model; longer texts would take minutes
const WAIT = 120; // milliseconds without a key stroke, before the texts are scored
const candidate = element("candidate");
const reference = element("reference");
let scorer;
let newest = 0; // number of the newest request; older ones are dropped

/** Connect the fields to a scorer, and score the texts in them. */
export async function showSinglePair(loaded) {
  scorer = loaded;
  await update();
}

/** Score the two texts, show the result, and look for words that change the meaning. */
async function update() {
  if (!scorer) return;
  const number = ++newest;
  const isWanted = () => number === newest;
  const texts = [candidate.value, reference.value];
  element("result").hidden = texts.some((text) => !text.trim());
  if (element("result").hidden) return;
  const started = performance.now();
  const comparison = await scorer.score(...texts);
  if (!isWanted()) return;
  const sides = comparison.empty ? [] : scorer.explain(comparison);
  const time = performance.now() - started;
  showComparison(comparison);
  showWords(sides, []);
  show("time", `Computed in ${time.toFixed(0)} ms.`);
  if (!comparison.changed || sides.flat().length > MOST_WORDS) return;
  const changing = await scorer.changingWords(comparison, isWanted);
  if (isWanted() && changing.length) {
    show("note", `The meaning may have changed: ${changing.join(", ")}.`);
    showWords(sides, changing);
  }
}

/** Show score, percentile, and the probability of the same meaning. */
function showComparison({ score, same, percentile, changed, empty, candidate: a, reference: b }) {
  show("score", score.toFixed(4));
  const better = percentile === null ? "" : `Higher than ${shownShare(percentile)} random pairs.`;
  show("percentile", better);
  element("meaning").hidden = same === null;
  const verdict = same === null ? "" : same >= 0.75 ? "Yes" : same > 0.25 ? "Unsure" : "No";
  show("verdict", verdict);
  element("verdict").className = `figure ${verdict.toLowerCase()}`;
  show("probability", same === null ? "" : `Probability of the same meaning: ${same.toFixed(4)}.`);
  const notes = [
    changed && "The meaning may have changed.",
    empty && "A text is empty after cleaning. Empty texts score 1 if both are equal, otherwise 0.",
    (a.truncated || b.truncated) && "A text is longer than the model reads; its end was not read.",
  ].filter(Boolean);
  show("note", notes.join(" "));
  element("note").hidden = notes.length === 0;
  element("why").hidden = empty;
  show("spoken", `Score ${score.toFixed(2)}. ${better} ${verdict && `Says the same? ${verdict}.`} ${notes.join(" ")}`);
}

function shownShare(percentile) {
  return percentile >= 99.95 ? "all" : `${percentile.toFixed(1)}% of`;
}

/** Show the words of both texts, coloured by what they add to the score. */
function showWords(sides, changing) {
  const largest = Math.max(...sides.flat().map((word) => Math.abs(word.contribution)), 1e-9);
  const names = ["Candidate", "Reference"];
  element("words").replaceChildren(
    ...sides.map((words, side) => {
      const block = document.createElement("div");
      const shown = document.createElement("p");
      shown.className = "words";
      for (const { text, contribution, match } of words) {
        const span = document.createElement("span");
        const strength = (0.55 * Math.abs(contribution)) / largest;
        span.textContent = text;
        span.title = `${signed(contribution)}, matched with “${match}”`;
        span.style.background = `rgb(var(--${contribution < 0 ? "minus" : "plus"}) / ${strength.toFixed(2)})`;
        if (changing.includes(text)) span.className = "changing";
        shown.append(span, " ");
      }
      block.append(Object.assign(document.createElement("h4"), { textContent: names[side] }), shown);
      return block;
    }),
  );
  element("contributions").replaceChildren(
    row("th", ["text", "word", "adds", "most similar word", "similarity"], [2, 4]),
    ...sides.flatMap((words, side) =>
      words.map(({ text, contribution, match, similarity }) =>
        row("td", [names[side], text, signed(contribution), match, similarity.toFixed(2)], [2, 4]),
      ),
    ),
  );
}

function signed(number) {
  return `${number < 0 ? "−" : "+"}${Math.abs(number).toFixed(3)}`;
}

let timer;
for (const field of [candidate, reference]) {
  field.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(update, WAIT);
  });
}
for (const button of document.querySelectorAll("[data-candidate]")) {
  button.addEventListener("click", () => {
    candidate.value = button.dataset.candidate;
    reference.value = button.dataset.reference;
    update();
  });
}
