/** The texts in the table: words without a counterpart are marked, and the end of a long text or code is folded. */

const mostWords = 60; // of a folded text
const fewWords = 10; // are not worth folding
const mostLines = 12; // of folded code
const fewLines = 4;

// The words of a text that is cut are not all here, so no word of its pair can be called missing. Of a summary,
// many words that are right are missing in the code.
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
  if (isFolded) fold(line, parts.slice(visible), text, `all ${size.toLocaleString("en")} words`);
  return line;
}

function codeBlock(text) {
  if (!text.trim()) return element("div", { className: "note", textContent: "(empty)" });
  const lines = withoutMargin(text.trimEnd().split("\n"));
  const isFolded = lines.length > mostLines + fewLines;
  const block = element("pre", {}, lines.slice(0, isFolded ? mostLines : lines.length).join("\n"));
  if (isFolded) fold(block, [`\n${lines.slice(mostLines).join("\n")}`], text, `all ${lines.length.toLocaleString("en")} lines`);
  return block;
}

// Code that was cut out of a class begins without the margin that its other lines have.
function withoutMargin(lines) {
  const margin = /^(\s+)(\}|\);|end\b)/.exec(lines.at(-1))?.[1] ?? "";
  return margin ? lines.map((line) => (line.startsWith(margin) ? line.slice(margin.length) : line)) : lines;
}

// Hide the end of a long text behind a button, unless the reader searches for something in it.
function fold(line, parts, text, all) {
  const query = tight(state.query);
  const hidden = !query || !tight(text).includes(query);
  const rest = element("span", { className: "folded", hidden }, ...parts);
  const button = element("button");
  const label = () => {
    button.textContent = rest.hidden ? `show ${all}` : "show less";
    button.setAttribute("aria-expanded", String(!rest.hidden));
  };
  button.onclick = () => {
    rest.hidden = !rest.hidden;
    label();
  };
  label();
  line.append(rest, line.tagName === "PRE" ? "\n" : " ", button);
}

// The words that changed the meaning of a pair, in one column of `same`, or in all.
function causesOf(pair, name) {
  const columns = (pair.changedBy ?? []).filter((_, i) => name === undefined || data.same[i] === name);
  return new Set(columns.flatMap((own) => own ?? []));
}
