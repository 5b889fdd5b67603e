/** The columns of the table of pairs, and the data of the report, which they read. */

const data = JSON.parse(document.getElementById("data").textContent);
const several = data.systems.length > 1;
const nameOfSame = (i) => (data.same.length > 1 ? `same ${data.same[i]}` : "same");
const isChanged = (pair) => pair.changed.some(Boolean);
const hasCode = data.pairs.some((pair) => pair.code !== undefined);
const otherTexts = [...(data.hasReferences ? ["reference"] : []), ...(hasCode ? ["code"] : [])];
const hasCauses = data.pairs.some((pair) => pair.changedBy);

// Metrics and systems may have the name of another column, such as "words": a prefix tells them apart.
const nameOfScore = (name) => (name === "score" ? name : `score ${name}`);

// A column has a heading, the number by which it sorts, and a name in orders and copies. A missing number comes last.
const column = (heading, value, name = heading) => ({ heading, value, name });
const columns = [
  column("pair", (pair) => pair.number),
  ...data.columns.map((name, i) => column(name, (pair) => pair.scores[i], nameOfScore(name))),
  ...(several ? [] : data.same.map((_, i) => column(nameOfSame(i), (pair) => pair.same[i]))),
  column("words", (pair) => pair.overlap),
];
