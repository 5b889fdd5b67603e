/** The start of the page: it loads the model, shows the progress, and connects both halves of the page. */

import { element, show } from "./dom_helpers.js";
import { showPairs } from "./many_pairs.js";
import { Scorer } from "./scorer.js";
import { showSinglePair } from "./single_pair.js";

async function start() {
  const started = performance.now();
  let scorer;
  try {
    scorer = await Scorer.load((done, all) => {
      element("progress").value = done / all;
      show("status", `Loading the model… ${Math.round(done / 1e6)} of ${Math.round(all / 1e6)} MB`);
    });
  } catch (error) {
    show("status", `The model cannot be loaded. ${error.message}`);
    element("status").className = "error";
    element("progress").hidden = true;
    return;
  }
  element("loading").hidden = true;
  const seconds = ((performance.now() - started) / 1000).toFixed(1);
  const { signature, rounded } = scorer.settings;
  const note = rounded ? "Weights were rounded to 8 bits: scores differ a little from Python's. " : "";
  show("model", `Loaded in ${seconds} s. ${note}${signature}`);
  globalThis.scorer = scorer; // for the console of the browser
  showPairs(scorer);
  await showSinglePair(scorer);
}

start();
