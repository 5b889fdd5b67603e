/** Helpers that put values into the page, always as text and never as HTML. */

/** Return the element with an id. */
export function element(id) {
  return document.getElementById(id);
}

/** Show a text in the element with an id. */
export function show(id, text) {
  element(id).textContent = text;
}

/**
 * Make a table row.
 *
 * @param {"td"|"th"} kind The kind of its cells.
 * @param {string[]} values The texts of the cells.
 * @param {number[]} numbers The places of the columns that hold numbers.
 */
export function row(kind, values, numbers) {
  const made = document.createElement("tr");
  for (const [place, value] of values.entries()) {
    const cell = document.createElement(kind);
    cell.textContent = value;
    cell.className = numbers.includes(place) ? "number" : "text";
    if (kind === "th") cell.scope = "col";
    made.append(cell);
  }
  return made;
}
