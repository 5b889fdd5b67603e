/** The comparison of words, for the marks and the notes of a pair. */

// The column "words" counts words by the same rule; see word_overlap.py.
const normal = (word) => word.toLowerCase().replace(/[^\p{L}\p{M}\p{N}]/gu, "");
const wordsOf = (text) => new Set(text.split(/\s+/).map(normal).filter(Boolean));

// The words that changed the meaning are cleaned: in lower-case ASCII, without the punctuation beside them.
function isCause(part, causes) {
  if (!causes.size) return false;
  const plain = part.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();
  return [plain, ...plain.split(/[^\p{L}\p{N}']+/u)].some((word) => causes.has(word));
}
