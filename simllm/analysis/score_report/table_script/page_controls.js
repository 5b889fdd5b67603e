/** The headings, menus and buttons of the page, and the start of its script. */

function sortBy(key) {
  refresh({ order: orderBy(key, state.order.key === key ? -state.order.direction : 1) });
}

function goToControls() {
  find("pairs").scrollIntoView();
  find("filter").focus({ preventScroll: true });
}

// Headings of the table: the button in the heading of a column of numbers sorts by it.
const heads = [...columns.map((column) => column.heading), "candidate", ...otherTexts, "note"].map((name, place) => {
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

// Menus and the search.
const option = ({ name }, i) => element("option", { value: String(i), textContent: name });
find("filter").append(...filters.map(option));
find("filter").onchange = (event) => {
  const filter = filters[Number(event.target.value)];
  refresh({ filter, order: filter === all ? state.order : filter.order });
};
find("order").append(...orders.map(option));
find("order").onchange = (event) => refresh({ order: orders[Number(event.target.value)] });

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

if (filters.includes(flagged)) {
  find("flagged").hidden = false;
  find("flagged").textContent = `"${flagged.name}" joins these filters: ${quoted(flags.map(({ name }) => name))}.`;
}

// Buttons: shortcuts to filters, pages of the table, copies and files.
for (const filter of filters.filter((filter) => filter.button)) {
  const onclick = () => {
    refresh({ ...everything, filter, order: filter.order });
    goToControls();
  };
  find("shortcuts").append(element("button", { textContent: filter.button, onclick }), " ");
}
find("clear").onclick = () => {
  refresh({ ...everything, order: state.order });
  if (!shown.length) refresh(everything); // the order itself leaves out all pairs
  find("query").focus();
};

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

// Events of the window: another address, another size, a print.
window.addEventListener("hashchange", (event) => {
  if (location.hash === "#notes") putAddress(event.oldURL); // keep the choices in the address
  else openAddress();
});
window.addEventListener("resize", fit);
for (const [event, value] of [["beforeprint", true], ["afterprint", false]]) {
  window.addEventListener(event, () => {
    isPrinting = value;
    draw();
  });
}

openAddress();
