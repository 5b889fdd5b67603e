/** Text cleaning: runs the normalizer that `tokenizer.json` describes, as the package `tokenizers` does. */

const FOREIGN = "\ufffd"; // it has no decomposition and is no mark, so later rules see an unknown character

/**
 * Make the cleaning function of a tokenizer.
 *
 * @param {object} settings The `normalizer` of `tokenizer.json`.
 * @param {{decomposed: string, marks: string}} unicode Character classes: the characters that `tokenizers`
 *     decomposes, and the marks that it removes. Browsers know newer versions of Unicode.
 * @returns {function(string): string}
 */
export function makeNormalizer(settings, unicode) {
  const newer = new RegExp(`(?![${unicode.decomposed}${unicode.marks}])[^\\0-\\x7f]`, "gu");
  const marks = new RegExp(`[${unicode.marks}]`, "gu");
  const steps = {
    Sequence: ({ normalizers }) => {
      const parts = normalizers.map(build);
      return (text) => parts.reduce((cleaned, part) => part(cleaned), text);
    },
    Replace: ({ pattern, content }) => {
      const { regex, keeps } = translate(pattern.Regex);
      return (text) => text.replace(regex, keeps ? (_, kept) => kept + content : () => content);
    },
    NFKD: () => (text) =>
      isAscii(text) ? text : text.replace(newer, asKnown).normalize("NFKD"),
    StripAccents: () => (text) => (isAscii(text) ? text : text.replace(marks, "")),
    Strip: () => (text) => text.trim(),
    Lowercase: () => (text) => text.toLowerCase(),
  };
  const build = (step) => {
    if (!(step.type in steps)) throw new Error(`tokenizer.json: unknown normalizer ${step.type}`);
    return steps[step.type](step);
  };
  return build(settings);
}

/** Replace a character by U+FFFD if only the browser, and not `tokenizers`, decomposes it or calls it a mark. */
function asKnown(character) {
  return character.normalize("NFKD") !== character || /\p{M}/u.test(character) ? FOREIGN : character;
}

function isAscii(text) {
  return !/[^\0-\x7f]/.test(text);
}

/**
 * Translate a regular expression of Oniguruma, which `tokenizers` uses, into one of JavaScript.
 *
 * JavaScript has no `\A`, `\z`, `\K` (keep the text matched so far) and no atomic groups `(?>…)`. An atomic
 * group becomes a lookahead that captures, and a reference to the captured text.
 *
 * @param {string} pattern
 * @returns {{regex: RegExp, keeps: boolean}} `keeps`: group 1 holds the text that is kept.
 */
export function translate(pattern) {
  const keeps = pattern.includes("\\K");
  const numbers = [0]; // the new number of each capturing group of the pattern
  const ends = []; // how each open group ends
  let groups = keeps ? 1 : 0;
  const tokens = pattern.match(/\[(?:\\[\s\S]|[^\]\\])*\]|\\[\s\S]|\(\?>|\(\?|[\s\S]/g);
  const translated = tokens.map((token) => {
    switch (token) {
      case "\\A":
        return "^";
      case "\\z":
        return "$";
      case "\\K":
        return ")";
      case "(":
        numbers.push(++groups);
        ends.push(")");
        return token;
      case "(?":
        ends.push(")");
        return token;
      case "(?>":
        ends.push(`))\\${++groups})`);
        return "(?:(?=(";
      case ")":
        return ends.pop();
      default:
        return /^\\[1-9]$/.test(token) ? `\\${numbers[token[1]]}` : token;
    }
  });
  return { regex: new RegExp((keeps ? "(" : "") + translated.join(""), "g"), keeps };
}
