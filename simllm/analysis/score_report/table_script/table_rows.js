/** The rows of the table: one row for each pair, with its number, scores, texts and notes. */

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
    marked(text, reference, pair.cut || !data.hasReferences, causesOf(pair, several ? data.systems[i] : undefined)),
  ]);
  cell("candidate", "text", ...candidates);
  const inCandidates = wordsOf(pair.candidates.join(" "));
  if (data.hasReferences) cell("reference", "text", marked(pair.reference, inCandidates, pair.cut, causesOf(pair)));
  if (hasCode) cell("code", "text", codeBlock(pair.code));
  cell("note", pair.empty || isChanged(pair) ? "text note" : "text soft", notes(pair));
  return row;
}

const shortened = (id) => (id.length > longestId ? `${id.slice(0, longestId)}…` : id);

function systemLine(pair, i) {
  const same = data.same.length ? `, same ${rounded(pair.same[i])}` : "";
  return `${data.systems[i]}: ${rounded(pair.scores[i])}${same}`;
}
