/** The formats of values that the page shows: counts of pairs, quoted words, scores, and ids. */

const count = (number) => `${number.toLocaleString("en")} ${number === 1 ? "pair" : "pairs"}`;
const quoted = (words) => words.map((word) => `"${word}"`).join(", ");
const rounded = (value) => (value === null ? "n/a" : value.toFixed(3).replace(/^(-?)0\./, "$1."));
const asText = (value) => (typeof value === "string" ? value : JSON.stringify(value));
