/** The data of the report, and the columns of its table of pairs. */

const data = JSON.parse(document.getElementById("data").textContent);
const several = data.systems.length > 1;
const nameOfSame = (i) => (data.same.length > 1 ? `same ${data.same[i]}` : "same");
const isChanged = (pair) => pair.changed.some(Boolean);
const hasCauses = data.pairs.some((pair) => pair.changedBy);

// A column has a name, and the number by which it sorts. A missing number comes last.
const columns = [
  { name: "pair", value: (pair) => pair.number },
  ...data.columns.map((name, i) => ({ name, value: (pair) => pair.scores[i] })),
  ...(several ? [] : data.same.map((name, i) => ({ name: nameOfSame(i), value: (pair) => pair.same[i] }))),
  { name: "words", value: (pair) => pair.overlap },
];
