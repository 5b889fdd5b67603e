(() => {
  "use strict";
  const data = JSON.parse(document.getElementById("data").textContent);
  const rowsOnPage = 25;
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
  const main = (pair) => (several ? mean(pair.scores) : pair.scores[0]);
  const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
  const worst = { value: main, direction: data.lowerIsBetter ? -1 : 1 };
  const [bad, good] = data.lowerIsBetter ? ["high", "low"] : ["low", "high"];

  // A view is an order of the pairs, and a condition for showing them.
  const views = [
    { name: `worst first (${bad}est scores)`, ...worst },
    { name: `best first (${good}est scores)`, value: main, direction: -worst.direction },
    { name: `common words, but a ${bad} score`, value: (pair) => pair.surprise, direction: -1 },
    { name: `other words, but a ${good} score`, value: (pair) => pair.surprise, direction: 1 },
    { name: "as in the input", value: (pair) => pair.number, direction: 1 },
  ];
  const isChanged = (pair) => pair.changed.some(Boolean);
  if (data.pairs.some(isChanged)) {
    const place = views.length;
    find("see-changed").hidden = false;
    find("see-changed").onclick = () => {
      find("view").value = String(place);
      find("group").value = find("query").value = "";
      refresh({ view: views[place], order: views[place], column: null, group: "", query: "" });
      find("table").scrollIntoView();
      find("table").focus({ preventScroll: true });
    };
    views.push({ name: "meaning may have changed", value: main, direction: -1, holds: isChanged });
  }
  if (data.pairs.some((pair) => pair.empty)) {
    views.push({ name: "a text is empty", value: (pair) => pair.number, direction: 1, holds: (pair) => pair.empty });
  }
  data.systems.forEach((a, i) =>
    data.systems.forEach((b, j) => {
      if (i !== j) views.push({ name: `${a} above ${b}`, value: (pair) => pair.scores[i] - pair.scores[j], direction: -1 });
    }),
  );

  const hasCauses = data.pairs.some((pair) => pair.changedBy);

  const state = { view: views[0], order: worst, column: null, query: "", group: "", page: 0, chosen: null };
  let shown = [];

  function element(tag, properties = {}, ...children) {
    const made = Object.assign(document.createElement(tag), properties);
    made.append(...children);
    return made;
  }

  const count = (number) => `${number.toLocaleString("en")} ${number === 1 ? "pair" : "pairs"}`;
  const quoted = (words) => words.map((word) => `"${word}"`).join(", ");
  const normal = (word) => word.toLowerCase().replace(/[^\p{L}\p{M}\p{N}]/gu, "");
  const wordsOf = (text) => new Set(text.split(/\s+/).map(normal).filter(Boolean));

  // The words of a text that is cut are not all here, so no word of its pair can be called missing.
  function marked(text, others, isCut) {
    const line = element("div", { dir: "auto" });
    if (!text.trim()) return element("div", { className: "note", textContent: "(empty)" });
    for (const part of text.split(/(\s+)/)) {
      const word = normal(part);
      line.append(word && !isCut && !others.has(word) ? element("mark", { textContent: part }) : part);
    }
    return line;
  }

  function notes(pair) {
    const found = [];
    if (pair.empty) found.push("a text is empty");
    else if (!several && data.unrelatedBelow !== null && pair.scores[0] < data.unrelatedBelow) {
      found.push("scores like unrelated texts");
    }
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
    if (pair.cut) found.push(`cut after ${data.longest.toLocaleString("en")} characters, words not compared`);
    else if (!several && !pair.empty) {
      const reference = [...wordsOf(pair.reference)];
      const candidate = wordsOf(pair.candidates[0]);
      const missing = reference.filter((word) => !candidate.has(word)).length;
      if (!candidate.size) found.push("the candidate has no words");
      else if (missing && missing === reference.length) found.push("no common words");
      else if (missing) found.push(`${missing} of ${reference.length} reference words missing`);
    }
    return found.join("; ");
  }

  function systemLine(pair, i) {
    const same = data.same.length ? `, same ${rounded(pair.same[i])}` : "";
    return `${data.systems[i]}: ${rounded(pair.scores[i])}${same}`;
  }

  const rounded = (value) => (value === null ? "n/a" : value.toFixed(3));

  function tableRow(pair) {
    const row = element("tr", { id: `pair-${pair.number}` });
    row.classList.toggle("chosen", pair.number === state.chosen);
    const cell = (name, className, ...children) => {
      const made = element("td", { className }, ...children);
      made.dataset.name = name;
      row.append(made);
    };
    const label = pair.id === undefined ? String(pair.number) : `${pair.number} (${asText(pair.id)})`;
    cell("pair", "", element("a", { href: `#pair-${pair.number}`, textContent: label }));
    for (const column of columns.slice(1)) cell(column.name, "", rounded(column.value(pair)));
    const reference = wordsOf(pair.reference);
    const candidates = pair.candidates.flatMap((text, i) => [
      ...(several ? [element("span", { className: "soft", textContent: systemLine(pair, i) })] : []),
      marked(text, reference, pair.cut),
    ]);
    cell("candidate", "text", ...candidates);
    cell("reference", "text", marked(pair.reference, wordsOf(pair.candidates.join(" ")), pair.cut));
    cell("note", pair.empty || isChanged(pair) ? "text note" : "text soft", notes(pair));
    return row;
  }

  const asText = (value) => (typeof value === "string" ? value : JSON.stringify(value));

  function matches(pair) {
    if (state.view.holds && !state.view.holds(pair)) return false;
    if (state.group) {
      const [field, value] = JSON.parse(state.group);
      if (pair.groups[field] !== value) return false;
    }
    const query = state.query.trim().toLowerCase();
    if (!query) return true;
    const texts = [String(pair.number), asText(pair.id ?? ""), pair.reference, ...pair.candidates];
    return texts.some((text) => text.toLowerCase().includes(query));
  }

  function select() {
    const { value, direction } = state.order;
    const last = (number) => (number === null || Number.isNaN(number) ? 1 : 0);
    shown = data.pairs.filter(matches).sort((a, b) => {
      const [x, y] = [value(a), value(b)];
      return last(x) - last(y) || direction * (x - y) || a.number - b.number;
    });
  }

  function draw() {
    const pages = Math.max(1, Math.ceil(shown.length / rowsOnPage));
    state.page = Math.min(Math.max(0, state.page), pages - 1);
    const start = state.page * rowsOnPage;
    const body = document.querySelector(".pairs tbody");
    body.replaceChildren(...shown.slice(start, start + rowsOnPage).map(tableRow));
    find("page").textContent = `page ${state.page + 1} of ${pages}`;
    find("back").disabled = state.page === 0;
    find("next").disabled = state.page === pages - 1;
    const of = data.pairs.length < data.total ? ` (a sample of ${data.total.toLocaleString("en")})` : "";
    say(`${shown.length.toLocaleString("en")} of ${count(data.pairs.length)}${of}`);
    for (const head of document.querySelectorAll(".pairs th[data-place]")) {
      const chosen = state.column === Number(head.dataset.place);
      if (chosen) head.setAttribute("aria-sort", state.order.direction > 0 ? "ascending" : "descending");
      else head.removeAttribute("aria-sort");
    }
  }

  const say = (text) => { find("status").textContent = text; };

  function refresh(change) {
    Object.assign(state, { page: 0 }, change);
    select();
    draw();
  }

  function sortBy(place) {
    const again = state.column === place;
    const direction = again ? -state.order.direction : 1;
    refresh({ column: place, order: { value: columns[place].value, direction } });
  }

  function goToLink() {
    const number = Number(/^#pair-(\d+)$/.exec(location.hash)?.[1]);
    if (!number) return;
    history.scrollRestoration = "manual"; // a reload shows the pair, not the place that the reader scrolled to
    Object.assign(state, { chosen: number });
    if (!shown.some((pair) => pair.number === number)) {
      find("query").value = state.query = state.group = "";
      find("group").value = "";
      find("view").value = "0";
      refresh({ view: views[0], order: worst, column: null });
    }
    const place = shown.findIndex((pair) => pair.number === number);
    if (place < 0) {
      say(`Pair ${number} is not in this table.`);
      return;
    }
    state.page = Math.floor(place / rowsOnPage);
    draw();
    find(`pair-${number}`).scrollIntoView({ block: "center" });
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
    pair.candidates.forEach((text, i) => { fields[several ? `candidate ${data.systems[i]}` : "candidate"] = text; });
    return { ...fields, reference: pair.reference };
  }

  async function copy(form) {
    const records = shown.map(record);
    const line = (values) => values.map((value) => asText(value ?? "").replace(/\s/g, " ")).join("\t");
    const text = form === "json"
      ? JSON.stringify(records, null, 1)
      : [line(Object.keys(records[0] ?? {})), ...records.map((fields) => line(Object.values(fields)))].join("\n");
    try {
      await navigator.clipboard.writeText(text);
      say(`Copied ${count(records.length)}.`);
    } catch {
      say("The browser does not allow copying.");
    }
  }

  const heads = [...columns.map((column) => column.name), "candidate", "reference", "note"].map((name, place) => {
    const isText = place >= columns.length;
    const head = element("th", { scope: "col", className: isText ? "text" : "" });
    if (isText) head.textContent = name;
    else {
      head.dataset.place = place;
      head.append(element("button", { textContent: name, onclick: () => sortBy(place) }));
    }
    return head;
  });
  document.querySelector(".pairs thead").append(element("tr", {}, ...heads));
  find("view").append(...views.map((view, i) => element("option", { value: String(i), textContent: view.name })));
  find("view").onchange = (event) => {
    const view = views[Number(event.target.value)];
    refresh({ view, order: view, column: null });
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
    if (find(pressed).disabled) find(other).focus(); // a disabled button would lose the focus of the keyboard
  };
  find("back").onclick = () => turn(-1, "back", "next");
  find("next").onclick = () => turn(1, "next", "back");
  find("copy-json").onclick = () => copy("json");
  find("copy-tsv").onclick = () => copy("tsv");
  window.addEventListener("hashchange", goToLink);
  select();
  draw();
  goToLink();
})();
