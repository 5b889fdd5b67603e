/** The second half of the page: it scores pasted pairs, and offers the scores as a file. */

import { element, row, show } from "./dom_helpers.js";

const SHOWN = 200; // pairs in the table; the file has all
const PAUSE = 50; // milliseconds of work, after which the page may react

/** Connect the buttons to a scorer. */
export function showPairs(scorer) {
  let table = "";
  let stopped = false;
  const run = element("run");
  const progress = element("batch-progress");
  run.disabled = false;

  run.addEventListener("click", async () => {
    const pairs = parse(element("pairs").value, element("header").checked);
    if (typeof pairs === "string") {
      show("batch", pairs);
      return;
    }
    stopped = false;
    run.disabled = element("download").disabled = true;
    element("stop").hidden = progress.hidden = false;
    progress.max = pairs.length;
    try {
      const rows = await scoreAll(scorer, pairs, (done) => {
        progress.value = done;
        show("batch", `${done} of ${counted(pairs.length)}`);
        return !stopped;
      });
      table = finish(scorer, rows, pairs.length);
      element("download").disabled = rows.length === 0;
    } finally {
      run.disabled = false;
      element("stop").hidden = progress.hidden = true;
    }
  });
  element("stop").addEventListener("click", () => {
    stopped = true;
  });
  element("download").addEventListener("click", () => {
    const url = URL.createObjectURL(new Blob([table], { type: "text/tab-separated-values" }));
    Object.assign(document.createElement("a"), { href: url, download: "scores.tsv" }).click();
    setTimeout(() => URL.revokeObjectURL(url), 60_000);
  });
}

/** Write a number of pairs, such as "1 pair". */
const counted = (number) => `${number} ${number === 1 ? "pair" : "pairs"}`;

/**
 * Split pasted lines into pairs.
 *
 * @returns {string[][]|string} The pairs, or what is wrong.
 */
function parse(text, hasHeader) {
  const lines = text.split(/\r\n|\r|\n/).map((line, i) => [line, i + 1]);
  // A line with only a tab is a pair of two empty texts, and gets a score like all others.
  const filled = lines.slice(hasHeader ? 1 : 0).filter(([line]) => line.includes("\t") || line.trim());
  for (const [line, number] of filled) {
    const columns = line.split("\t").length;
    if (columns !== 2) return `Line ${number}: expected two columns with a tab between them, found ${columns}.`;
  }
  return filled.length ? filled.map(([line]) => line.split("\t")) : "Paste at least one pair.";
}

/**
 * Score pairs one after the other; let the page react in between.
 *
 * @param {function(number): boolean} goOn Called with the number of pairs done; whether to continue.
 * @returns {Promise<object[]>} The comparisons of the pairs scored, in input order, without token states.
 */
async function scoreAll(scorer, pairs, goOn) {
  const rows = [];
  let since = performance.now();
  for (const [candidate, reference] of pairs) {
    const { score, same, percentile, changed, empty } = await scorer.score(candidate, reference);
    rows.push({ score, same, percentile, changed, empty, candidate, reference });
    if (performance.now() - since > PAUSE) {
      if (!goOn(rows.length)) break;
      await new Promise((resume) => setTimeout(resume));
      since = performance.now();
    }
  }
  return rows;
}

/** Show the first scores and a summary; return all scores as TSV. */
function finish(scorer, rows, wanted) {
  const columns = ["score"];
  if (scorer.settings.random) columns.push("percentile");
  if (scorer.settings.meaning) columns.push("same");
  const cells = ({ candidate, reference, ...values }) => [
    ...columns.map((name) => values[name].toFixed(name === "percentile" ? 1 : 4)),
    candidate,
    reference,
  ];
  const names = [...columns, "candidate", "reference"];
  const numbers = [...columns.keys()];
  element("scores").replaceChildren(
    row("th", names, numbers),
    ...rows.slice(0, SHOWN).map((each) => row("td", cells(each), numbers)),
  );
  element("preview").hidden = rows.length === 0;
  const mean = rows.reduce((total, { score }) => total + score, 0) / rows.length;
  const count = (name) => rows.filter((each) => each[name]).length;
  const parts = [
    rows.length < wanted
      ? `Stopped after ${rows.length} of ${counted(wanted)}.`
      : `${counted(rows.length)}.`,
    rows.length && `Mean score ${mean.toFixed(4)}.`,
    scorer.settings.meaning && `In ${count("changed")} the meaning may have changed.`,
    count("empty") && `In ${count("empty")} a text is empty after cleaning.`,
    rows.length > SHOWN && `The table shows the first ${SHOWN}; the file has all.`,
  ];
  show("batch", parts.filter(Boolean).join(" "));
  return [names, ...rows.map(cells)].map((values) => `${values.join("\t")}\n`).join("");
}
