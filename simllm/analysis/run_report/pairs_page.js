const data = JSON.parse(document.getElementById("data").textContent);
const rowsOnPage = 25;
const mostPrinted = 100; // rows
const mostWords = 60; // of a folded text
const fewWords = 10; // are not worth folding
const find = (id) => document.getElementById(id);
const several = data.systems.length > 1;
const nameOfSame = (i) => (data.same.length > 1 ? `same ${data.same[i]}` : "same");

// A column has a name, and the number by which it sorts. A missing number comes last.
const columns = [
  { name: "pair", value: (pair) => pair.number },
  ...data.columns.map((name, i) => ({ name, value: (pair) => pair.scores[i] })),
  ...(several ? [] : data.same.map((name, i) => ({ name: nameOfSame(i), value: (pair) => pair.same[i] }))),
  { name: "words", value: (pair) => pair.overlap },
];
const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
const main = several ? { value: (pair) => mean(pair.scores) } : columns[1];
const surprise = { value: (pair) => pair.surprise };
const [bad, good] = data.lowerIsBetter ? ["high", "low"] : ["low", "high"];
const isGood = (pair) => (data.lowerIsBetter ? main.value(pair) <= data.goodFrom : main.value(pair) >= data.goodFrom);
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
const isChanged = (pair) => pair.changed.some(Boolean);
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
  { name: "a text is empty", holds: (pair) => pair.empty, order: orderBy(columns[0], 1) },
  { name: "a text is too long", holds: (pair) => pair.long, order: orderBy(columns[0], 1) },
].filter((flag) => data.pairs.some(flag.holds));
const flagged = { name: "all flagged pairs", holds: (pair) => flags.some((flag) => flag.holds(pair)), order: worst };
const filters = [all, ...(flags.length > 1 ? [flagged] : []), ...flags];

const hasCauses = data.pairs.some((pair) => pair.changedBy);

const everything = { filter: all, order: worst, query: "", group: "" };
const state = { ...everything, page: 0, chosen: null };
let shown = [];
let isPrinting = false;

function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

const count = (number) => `${number.toLocaleString("en")} ${number === 1 ? "pair" : "pairs"}`;
const quoted = (words) => words.map((word) => `"${word}"`).join(", ");
// The column "words" counts words by the same rule; see word_overlap.py.
const normal = (word) => word.toLowerCase().replace(/[^\p{L}\p{M}\p{N}]/gu, "");
const wordsOf = (text) => new Set(text.split(/\s+/).map(normal).filter(Boolean));

// Cleaned texts have spaces around punctuation, which readers do not type: "e . g ." is found by "e.g.".
const tight = (text) => text.toLowerCase().replace(/\s*([^\p{L}\p{M}\p{N}\s])\s*/gu, "$1").replace(/\s+/g, " ").trim();

// The words that changed the meaning are cleaned: in lower-case ASCII, without the punctuation beside them.
function isCause(part, causes) {
  if (!causes.size) return false;
  const plain = part.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();
  return [plain, ...plain.split(/[^\p{L}\p{N}']+/u)].some((word) => causes.has(word));
}

// The words of a text that is cut are not all here, so no word of its pair can be called missing.
function marked(text, others, isCut, causes) {
  if (!text.trim()) return element("div", { className: "note", textContent: "(empty)" });
  const parts = text.split(/(\s+)/).map((part) => {
    const word = normal(part);
    const shown = isCause(part, causes) ? element("strong", { className: "cause", textContent: part }) : part;
    return word && !isCut && !others.has(word) ? element("mark", {}, shown) : shown;
  });
  const line = element("div", { dir: "auto" }, ...parts.slice(0, 2 * mostWords)); // words and white space
  const size = text.trim().split(/\s+/).length;
  if (size > mostWords + fewWords) fold(line, parts.slice(2 * mostWords), text, size);
  return line;
}

// Hide the end of a long text behind a button, unless the reader searches for something in it.
function fold(line, parts, text, size) {
  const query = tight(state.query);
  const hidden = !query || !tight(text).includes(query);
  const rest = element("span", { className: "folded", hidden }, ...parts);
  const button = element("button");
  const label = () => {
    button.textContent = rest.hidden ? `show all ${size.toLocaleString("en")} words` : "show less";
    button.setAttribute("aria-expanded", String(!rest.hidden));
  };
  button.onclick = () => {
    rest.hidden = !rest.hidden;
    label();
  };
  label();
  line.append(rest, " ", button);
}

// The words that changed the meaning of a pair, in one column of `same`, or in all.
function causesOf(pair, name) {
  const columns = (pair.changedBy ?? []).filter((_, i) => name === undefined || data.same[i] === name);
  return new Set(columns.flatMap((own) => own ?? []));
}

function notes(pair) {
  const found = [];
  if (pair.empty) found.push("a text is empty");
  else if (!several && pair.unrelated) found.push("scores like unrelated texts");
  if (isChanged(pair)) {
    const where = data.same.length > 1 ? `${data.same.filter((_, i) => pair.changed[i]).join(", ")}: ` : "";
    found.push(`${where}meaning may have changed`);
    pair.changed.forEach((changed, i) => {
      const words = changed ? pair.changedBy?.[i] : null;
      const name = data.same.length > 1 ? `${data.same[i]} ` : "";
      if (words?.length) found.push(`${name}changed by: ${quoted(words)}`);
      else if (words) found.push(`${name}changed by no single word`);
    });
  }
  if (pair.long) found.push("a text is too long for the model");
  if (pair.cut) found.push(`cut after ${data.longest.toLocaleString("en")} characters, words not compared`);
  else if (!several && !pair.empty) {
    const reference = [...wordsOf(pair.reference)];
    const candidate = wordsOf(pair.candidates[0]);
    const missing = reference.filter((word) => !candidate.has(word)).length;
    if (!candidate.size) found.push("the candidate has no words");
    else if (!reference.length) found.push("the reference has no words");
    else if (missing === reference.length) found.push("no common words");
    else if (missing) found.push(`${missing} of ${reference.length} distinct reference words missing`);
  }
  return found.join("; ");
}

function systemLine(pair, i) {
  const same = data.same.length ? `, same ${rounded(pair.same[i])}` : "";
  return `${data.systems[i]}: ${rounded(pair.scores[i])}${same}`;
}

const rounded = (value) => (value === null ? "n/a" : value.toFixed(3).replace(/^(-?)0\./, "$1."));

function tableRow(pair) {
  const row = element("tr", { id: `pair-${pair.number}` });
  row.classList.toggle("chosen", pair.number === state.chosen);
  const cell = (name, className, ...children) => {
    const made = element("td", { className }, ...children);
    made.dataset.name = name;
    row.append(made);
  };
  const label = pair.id === undefined ? String(pair.number) : `${pair.number} (${asText(pair.id)})`;
  const link = element("a", { href: `#pair-${pair.number}`, textContent: label });
  link.onclick = (event) => choose(event, pair.number);
  cell("pair", "", link);
  for (const column of columns.slice(1)) cell(column.name, "", rounded(column.value(pair)));
  const reference = wordsOf(pair.reference);
  const candidates = pair.candidates.flatMap((text, i) => [
    ...(several ? [element("span", { className: "soft", textContent: systemLine(pair, i) })] : []),
    marked(text, reference, pair.cut, causesOf(pair, several ? data.systems[i] : undefined)),
  ]);
  cell("candidate", "text", ...candidates);
  const inCandidates = wordsOf(pair.candidates.join(" "));
  cell("reference", "text", marked(pair.reference, inCandidates, pair.cut, causesOf(pair)));
  cell("note", pair.empty || isChanged(pair) ? "text note" : "text soft", notes(pair));
  return row;
}

const asText = (value) => (typeof value === "string" ? value : JSON.stringify(value));

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

function draw() {
  const pages = Math.max(1, Math.ceil(shown.length / rowsOnPage));
  state.page = Math.min(Math.max(0, state.page), pages - 1);
  const start = isPrinting ? 0 : state.page * rowsOnPage;
  const visible = shown.slice(start, start + (isPrinting ? mostPrinted : rowsOnPage));
  document.querySelector(".pairs tbody").replaceChildren(...visible.map(tableRow));
  find("page").textContent = `page ${state.page + 1} of ${pages}`;
  find("back").disabled = state.page === 0;
  find("next").disabled = state.page === pages - 1;
  fit();
  find("none").hidden = shown.length > 0;
  find("filter").value = String(filters.indexOf(state.filter));
  find("order").value = String(orders.indexOf(state.order));
  find("group").value = state.group;
  if (find("query").value !== state.query) find("query").value = state.query;
  const of = data.pairs.length < data.total ? ` (a sample of ${data.total.toLocaleString("en")})` : "";
  const others = state.order.holds ? "; this order leaves out the others" : "";
  say(`${shown.length.toLocaleString("en")} of ${count(data.pairs.length)}${of}${others}`);
  find("printed").textContent = describeRows(start, visible.length);
  for (const head of document.querySelectorAll(".pairs th[data-place]")) {
    const chosen = state.order.key === columns[Number(head.dataset.place)];
    if (chosen) head.setAttribute("aria-sort", state.order.direction > 0 ? "ascending" : "descending");
    else head.removeAttribute("aria-sort");
  }
}

// Say which rows a print has; the names are those of the controls, which a print lacks.
function describeRows(start, size) {
  const choices = ["filter", "group", "order"].map((id) => [find(id).labels[0], find(id).selectedOptions[0]]);
  const parts = choices.map(([label, option]) => `${label.firstChild.textContent.trim()}: ${option.textContent}`);
  if (state.query.trim()) parts.push(`Search: ${state.query.trim()}`);
  const rows = size ? `Pairs ${start + 1} to ${start + size} of ${shown.length.toLocaleString("en")}` : "No pair matches";
  return `${[...parts, rows].join(". ")}.`;
}

// Headings stay in view beside a table that is not wider than the screen: only a wider one must scroll.
function fit() {
  const table = document.querySelector(".pairs");
  find("table").classList.toggle("fits", table.offsetWidth <= find("table").clientWidth);
}

const say = (text, place = "status") => { find(place).textContent = text; };

function refresh(change) {
  Object.assign(state, { page: 0 }, change);
  select();
  draw();
  say("", "done");
  writeAddress();
}

// The address names the filter, order, group and search, so that a reload and a link show the same pairs.
function writeAddress(pair = "") {
  const { filter, order, group, query } = state;
  const choices = [["show", filter, all], ["order", order, worst]].filter(([, value, usual]) => value !== usual);
  const named = choices.map(([key, { name }]) => [key, name]);
  const typed = [["group", group], ["search", query]].filter(([, value]) => value);
  const hash = [pair, new URLSearchParams([...named, ...typed]).toString()].filter(Boolean).join("&");
  history.replaceState(null, "", hash ? `#${hash}` : location.pathname + location.search);
}

function readAddress() {
  const fields = new URLSearchParams(location.hash.slice(1));
  const named = (list, key) => list.find(({ name }) => name === fields.get(key));
  const groups = [...find("group").options].map(({ value }) => value);
  Object.assign(state, {
    filter: named(filters, "show") ?? all,
    order: named(orders, "order") ?? worst,
    group: groups.find((value) => value === fields.get("group")) ?? "",
    query: fields.get("search") ?? "",
  });
}

function sortBy(key) {
  refresh({ order: orderBy(key, state.order.key === key ? -state.order.direction : 1) });
}

function goToControls() {
  find("pairs").scrollIntoView();
  find("filter").focus({ preventScroll: true });
}

// Mark a pair as chosen and put it into the address, without a jump: only an opened address scrolls.
function choose(event, number) {
  if (event.ctrlKey || event.metaKey || event.shiftKey) return; // the reader opens a tab or a window
  event.preventDefault();
  writeAddress(`pair-${number}`);
  state.chosen = number;
  for (const row of document.querySelectorAll(".pairs tbody tr")) {
    row.classList.toggle("chosen", row.id === `pair-${number}`);
  }
}

function goToLink() {
  const number = Number(/^#pair-(\d+)(?=&|$)/.exec(location.hash)?.[1]);
  if (!number) return;
  history.scrollRestoration = "manual"; // a reload shows the pair, not the place that the reader scrolled to
  Object.assign(state, { chosen: number });
  if (!shown.some((pair) => pair.number === number)) {
    refresh(everything);
    writeAddress(`pair-${number}`);
  }
  const place = shown.findIndex((pair) => pair.number === number);
  if (place < 0) {
    say(`Pair ${number} is not in this table.`);
    return;
  }
  state.page = Math.floor(place / rowsOnPage);
  draw();
  find(`pair-${number}`).scrollIntoView(); // below the headings, by the row's scroll margin
}

function record(pair) {
  const fields = { pair: pair.number };
  if (pair.id !== undefined) fields.id = pair.id;
  for (const column of columns.slice(1)) fields[column.name] = column.value(pair);
  if (several) data.same.forEach((_, i) => { fields[nameOfSame(i)] = pair.same[i]; });
  if (hasCauses) {
    const words = (pair.changedBy ?? []).map((own, i) => (own ? `${several ? `${data.same[i]}: ` : ""}${own.join(", ")}` : ""));
    fields["changed by"] = words.filter(Boolean).join("; ");
  }
  data.fields.forEach((name, i) => { fields[`group ${name}`] = pair.groups[i]; });
  fields.note = notes(pair);
  pair.candidates.forEach((text, i) => { fields[several ? `candidate ${data.systems[i]}` : "candidate"] = text; });
  return { ...fields, reference: pair.reference };
}

function shownAs(form) {
  const records = shown.map(record);
  const line = (values) => values.map((value) => asText(value ?? "").replace(/\s/g, " ")).join("\t");
  return form === "json"
    ? JSON.stringify(records, null, 1)
    : [line(Object.keys(records[0] ?? {})), ...records.map((fields) => line(Object.values(fields)))].join("\n");
}

async function copy(form) {
  try {
    await navigator.clipboard.writeText(shownAs(form));
    say(`Copied ${count(shown.length)}.`, "done");
  } catch {
    say("The browser does not allow copying.", "done");
  }
}

function save(form) {
  const href = URL.createObjectURL(new Blob([shownAs(form), "\n"]));
  element("a", { href, download: `pairs.${form}` }).click();
  URL.revokeObjectURL(href);
  say(`Saved ${count(shown.length)} as pairs.${form}.`, "done");
}

const heads = [...columns.map((column) => column.name), "candidate", "reference", "note"].map((name, place) => {
  const isText = place >= columns.length;
  const head = element("th", { scope: "col", className: isText ? "text" : "" });
  if (isText) head.textContent = name;
  else {
    head.dataset.place = place;
    head.append(element("button", { textContent: name, onclick: () => sortBy(columns[place]) }));
  }
  return head;
});
document.querySelector(".pairs thead").append(element("tr", {}, ...heads));
const option = ({ name }, i) => element("option", { value: String(i), textContent: name });
find("filter").append(...filters.map(option));
find("filter").onchange = (event) => {
  const filter = filters[Number(event.target.value)];
  refresh({ filter, order: filter === all ? state.order : filter.order });
};
find("order").append(...orders.map(option));
find("order").onchange = (event) => refresh({ order: orders[Number(event.target.value)] });
for (const filter of filters.filter((filter) => filter.button)) {
  const onclick = () => {
    refresh({ ...everything, filter, order: filter.order });
    goToControls();
  };
  find("shortcuts").append(element("button", { textContent: filter.button, onclick }), " ");
}
find("clear").onclick = () => {
  refresh({ ...everything, order: state.order });
  find("query").focus();
};
const byNumber = new Intl.Collator("en", { numeric: true }).compare; // "9" comes before "10 to 11"
find("group").append(element("option", { value: "", textContent: "all" }));
data.fields.forEach((field, i) => {
  const values = [...new Set(data.pairs.map((pair) => pair.groups[i]))].sort(byNumber);
  find("group").append(
    ...values.map((value) =>
      element("option", { value: JSON.stringify([i, value]), textContent: `${field}: ${value}` }),
    ),
  );
});
find("group").onchange = (event) => refresh({ group: event.target.value });
find("query").oninput = (event) => refresh({ query: event.target.value });
const turn = (step, pressed, other) => {
  state.page += step;
  draw();
  find("table").scrollIntoView();
  if (find(pressed).disabled) find(other).focus({ preventScroll: true }); // a disabled button would lose the focus of the keyboard
};
find("back").onclick = () => turn(-1, "back", "next");
find("next").onclick = () => turn(1, "next", "back");
for (const form of ["json", "tsv"]) {
  find(`copy-${form}`).onclick = () => copy(form);
  find(`save-${form}`).onclick = () => save(form);
}
if (filters.includes(flagged)) {
  find("flagged").hidden = false;
  find("flagged").textContent = `"${flagged.name}" joins these filters: ${quoted(flags.map(({ name }) => name))}.`;
}
window.addEventListener("hashchange", () => {
  if (location.hash.includes("=")) {
    readAddress();
    select();
    draw();
  }
  goToLink();
});
window.addEventListener("resize", fit);
for (const [event, value] of [["beforeprint", true], ["afterprint", false]]) {
  window.addEventListener(event, () => {
    isPrinting = value;
    draw();
  });
}
readAddress();
select();
draw();
goToLink();
