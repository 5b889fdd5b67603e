/** The rows of the table: texts with marked words, scores and notes. */

const mostWords = 60; // of a folded text
const fewWords = 10; // are not worth folding
const longestId = 80; // characters

function tableRow(pair) {
  const row = element("tr", { id: `pair-${pair.number}` });
  row.classList.toggle("chosen", pair.number === state.chosen);
  const cell = (name, className, ...children) => {
    const made = element("td", { className }, ...children);
    made.dataset.name = name;
    row.append(made);
  };
  const label = pair.id === undefined ? String(pair.number) : `${pair.number} (${shortened(asText(pair.id))})`;
  const link = element("a", { href: `#pair-${pair.number}`, textContent: label });
  link.onclick = (event) => choose(event, pair.number);
  cell("pair", "", link);
  for (const column of columns.slice(1)) cell(column.heading, "", rounded(column.value(pair)));
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

const shortened = (id) => (id.length > longestId ? `${id.slice(0, longestId)}…` : id);

// The words of a text that is cut are not all here, so no word of its pair can be called missing.
function marked(text, others, isCut, causes) {
  if (!text.trim()) return element("div", { className: "note", textContent: "(empty)" });
  const parts = text.split(/(\s+)/).map((part) => {
    const word = normal(part);
    const shown = isCause(part, causes) ? element("strong", { className: "cause", textContent: part }) : part;
    return word && !isCut && !others.has(word) ? element("mark", {}, shown) : shown;
  });
  const size = text.trim().split(/\s+/).length;
  const isFolded = size > mostWords + fewWords;
  const visible = isFolded ? 2 * mostWords : parts.length; // words and white space
  const line = element("div", { dir: "auto" }, ...parts.slice(0, visible));
  if (isFolded) fold(line, parts.slice(visible), text, size);
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
