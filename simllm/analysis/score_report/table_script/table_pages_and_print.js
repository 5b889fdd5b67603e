/** The pages of the table and its print: which rows are drawn, and the status above them. */

const rowsOnPage = 25;
const mostPrinted = 100; // rows
let isPrinting = false;

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
