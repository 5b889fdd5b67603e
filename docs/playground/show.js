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
 */
export function row(kind, values) {
  const made = document.createElement("tr");
  for (const value of values) {
    const cell = document.createElement(kind);
    cell.textContent = value;
    if (kind === "th") cell.scope = "col";
    else if (/^[−+-]?[\d.]+$/.test(value)) cell.className = "number";
    made.append(cell);
  }
  return made;
}
