/** The comparison of words, for marks, notes and the search; and the writing of counts and numbers. */

// The column "words" counts words by the same rule; see word_overlap.py.
const normal = (word) => word.toLowerCase().replace(/[^\p{L}\p{M}\p{N}]/gu, "");
const wordsOf = (text) => new Set(text.split(/\s+/).map(normal).filter(Boolean));

// Cleaned texts have spaces around punctuation, which readers do not type: "e . g ." is found by "e.g.".
const tight = (text) => text.toLowerCase().replace(/\s+/g, " ").replace(/ ?([^\p{L}\p{M}\p{N}\s]) ?/gu, "$1").trim();

// The words that changed the meaning are cleaned: in lower-case ASCII, without the punctuation beside them.
function isCause(part, causes) {
  if (!causes.size) return false;
  const plain = part.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();
  return [plain, ...plain.split(/[^\p{L}\p{N}']+/u)].some((word) => causes.has(word));
}

const count = (number) => `${number.toLocaleString("en")} ${number === 1 ? "pair" : "pairs"}`;
const quoted = (words) => words.map((word) => `"${word}"`).join(", ");
const rounded = (value) => (value === null ? "n/a" : value.toFixed(3).replace(/^(-?)0\./, "$1."));
const asText = (value) => (typeof value === "string" ? value : JSON.stringify(value));
