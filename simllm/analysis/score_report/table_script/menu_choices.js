/** The choices in the menus of the page: the orders and the filters. */

const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
const main = several ? { value: (pair) => mean(pair.scores) } : columns[1];
const surprise = { value: (pair) => pair.surprise };
const [bad, good] = data.lowerIsBetter ? ["high", "low"] : ["low", "high"];
const isGood = (pair) =>
  data.lowerIsBetter ? main.value(pair) <= data.worstGoodScore : main.value(pair) >= data.worstGoodScore;
const isComparable = (pair) => main.value(pair) !== null && [pair.reference, ...pair.candidates].every((text) => wordsOf(text).size);

// An order of the pairs: a column or another key, and a direction. The menu has all orders, so it always
// names the true one. An order with a condition leaves out the other pairs.
const worst = { name: `worst first (${bad}est scores)`, key: main, direction: data.lowerIsBetter ? -1 : 1 };
const best = { name: `best first (${good}est scores)`, key: main, direction: -worst.direction };
const orders = [
  worst,
  best,
  { name: `common words, but a ${bad} score`, key: surprise, direction: -1, holds: (pair) => isComparable(pair) && !isGood(pair) },
  { name: `other words, but a ${good} score`, key: surprise, direction: 1, holds: (pair) => isComparable(pair) && isGood(pair) },
  { name: "as in the input", key: columns[0], direction: 1 },
];
data.systems.forEach((a, i) =>
  data.systems.forEach((b, j) => {
    const key = { value: (pair) => pair.scores[i] - pair.scores[j] };
    if (i !== j) orders.push({ name: `${a} most above ${b}`, key, direction: -1 });
  }),
);
const orderBy = (key, direction) => orders.find((order) => order.key === key && order.direction === direction);
for (const key of columns) {
  for (const [way, direction] of [["lowest", 1], ["highest", -1]]) {
    if (!orderBy(key, direction)) orders.push({ name: `${key.name}, ${way} first`, key, direction });
  }
}

// A filter: a condition for showing a pair, the order in which such pairs are seen best, and its button.
const all = { name: "all pairs", holds: () => true, order: worst, button: "See the worst pairs" };
const flags = [
  {
    name: "score like unrelated texts",
    holds: (pair) => pair.unrelated,
    order: worst,
    button: "See pairs that score like unrelated texts",
  },
  {
    name: "meaning may have changed",
    holds: isChanged,
    order: best,
    button: "See pairs whose meaning may have changed",
  },
  { name: "the reference is boilerplate", holds: (pair) => pair.boilerplate, order: worst },
  { name: "a text is empty", holds: (pair) => pair.empty, order: orderBy(columns[0], 1) },
  { name: "a text is too long", holds: (pair) => pair.long, order: orderBy(columns[0], 1) },
].filter((flag) => data.pairs.some(flag.holds));
const flagged = { name: "all flagged pairs", holds: (pair) => flags.some((flag) => flag.holds(pair)), order: worst };
const filters = [all, ...(flags.length > 1 ? [flagged] : []), ...flags];
