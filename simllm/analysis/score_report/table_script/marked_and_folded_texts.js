/** The texts in the table: words without a counterpart are marked, and the end of a long text is folded. */

const mostWords = 60; // of a folded text
const fewWords = 10; // are not worth folding

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
