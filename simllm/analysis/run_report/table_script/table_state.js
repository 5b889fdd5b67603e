/** The state of the table: the choices of the reader, and the pairs that match them, in order. */

// The choices that show all pairs.
const everything = { filter: all, order: worst, query: "", group: "" };
const state = { ...everything, page: 0, chosen: null };
let shown = [];

function matches(pair) {
  if (!state.filter.holds(pair) || (state.order.holds && !state.order.holds(pair))) return false;
  if (state.group) {
    const [field, value] = JSON.parse(state.group);
    if (pair.groups[field] !== value) return false;
  }
  const query = tight(state.query);
  if (!query) return true;
  pair.tight ??= [asText(pair.id ?? ""), pair.reference, ...pair.candidates].map(tight);
  return isNumber(pair, query) || pair.tight.some((text) => text.includes(query));
}

// "54", "#54" and "pair 54" are the number of a pair.
const isNumber = (pair, query) => pair.number === Number(/^(?:pair ?)?#?(\d+)$/.exec(query)?.[1]);

function select() {
  const { key: { value }, direction } = state.order;
  const query = tight(state.query);
  const last = (number) => (number === null || Number.isNaN(number) ? 1 : 0);
  shown = data.pairs.filter(matches).sort((a, b) => {
    const [x, y] = [value(a), value(b)];
    const exact = isNumber(b, query) - isNumber(a, query);
    return exact || last(x) - last(y) || direction * (x - y) || a.number - b.number;
  });
}

function refresh(change) {
  Object.assign(state, { page: 0 }, change);
  select();
  draw();
  say("", "done");
  writeAddress();
}
