/** The address of the page: it names the choices of the reader, and a pair that a link leads to. */

// The address names the filter, order, group and search, so that a reload and a link show the same pairs.
function writeAddress(pair = "") {
  const { filter, order, group, query } = state;
  const choices = [["show", filter, all], ["order", order, worst]].filter(([, value, usual]) => value !== usual);
  const named = choices.map(([key, { name }]) => [key, name]);
  const typed = [["group", group], ["search", query]].filter(([, value]) => value);
  const hash = [pair, new URLSearchParams([...named, ...typed]).toString()].filter(Boolean).join("&");
  putAddress(location.href.split("#")[0] + (hash && `#${hash}`));
}

// Some frames refuse another address; the page works without it.
function putAddress(address) {
  try {
    history.replaceState(null, "", address);
  } catch {
    console.info("The browser refuses to write choices into the address.");
  }
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
    page: 0,
    chosen: null,
  });
}

function openAddress() {
  if (!/^#pair-\d+$/.test(location.hash)) readAddress(); // a mere link to a pair keeps the choices that show it
  select();
  draw();
  goToLink();
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
  const isLinked = (pair) => pair.number === number;
  if (!data.pairs.some(isLinked)) {
    writeAddress(`pair-${number}`);
    say(`Pair ${number} is not in this table.`);
    return;
  }
  if (!shown.some(isLinked)) refresh(everything);
  writeAddress(`pair-${number}`);
  state.chosen = number;
  state.page = Math.floor(shown.findIndex(isLinked) / rowsOnPage);
  draw();
  find(`pair-${number}`).scrollIntoView(); // below the headings, by the row's scroll margin
}
