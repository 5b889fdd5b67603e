/** The search and the sorting of the table: the choices of the reader, and the pairs that match, in order. */

// The choices that show all pairs.
const everything = { filter: all, order: worst, query: "", group: "" };
const state = { ...everything, page: 0, chosen: null };
let shown = [];

// Cleaned texts have spaces around punctuation, which readers do not type: "e . g ." is found by "e.g.".
const tight = (text) => text.toLowerCase().replace(/\s+/g, " ").replace(/ ?([^\p{L}\p{M}\p{N}\s]) ?/gu, "$1").trim();

function matches(pair, query, number) {
  if (!state.filter.holds(pair) || (state.order.holds && !state.order.holds(pair))) return false;
  if (state.group) {
    const [field, value] = JSON.parse(state.group);
    if (pair.groups[field] !== value) return false;
  }
  if (!query) return true;
  pair.tight ??= [asText(pair.id ?? ""), pair.reference, pair.code ?? "", ...pair.candidates].map(tight);
  return pair.number === number || pair.tight.some((text) => text.includes(query));
}

function select() {
  const { key: { value }, direction } = state.order;
  const query = tight(state.query);
  const number = Number(/^(?:pair ?)?#?(\d+)$/.exec(query)?.[1]); // "54", "#54" and "pair 54" are the number of a pair
  const isId = (pair) => query !== "" && pair.tight[0] === query;
  const last = (number) => (number === null || Number.isNaN(number) ? 1 : 0);
  shown = data.pairs.filter((pair) => matches(pair, query, number)).sort((a, b) => {
    const [x, y] = [value(a), value(b)];
    const exact = isId(b) - isId(a) || (b.number === number) - (a.number === number);
    return exact || last(x) - last(y) || direction * (x - y) || a.number - b.number;
  });
}

function refresh(change) {
  Object.assign(state, { page: 0, chosen: null }, change); // the new address does not name the chosen pair
  select();
  draw();
  say("", "done");
  writeAddress();
}
