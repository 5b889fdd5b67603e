/** Helpers that find, make and fill elements of the page. */

const find = (id) => document.getElementById(id);

function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

const say = (text, place = "status") => { find(place).textContent = text; };
