// Elements in few words. What machines say becomes text, never markup: nothing here reads markup.
export const at = (id) => document.getElementById(id);

// `what`: properties; those of `data` become data-*, `on` are listeners, `aria` becomes aria-*. Children are nodes or texts; null is left out.
export function el(name, what = {}, ...children) {
  const made = document.createElement(name);
  const { data = {}, on = {}, aria = {}, attr = {}, ...properties } = what;
  Object.assign(made, properties);
  Object.assign(made.dataset, data);
  for (const [event, call] of Object.entries(on)) { made.addEventListener(event, call); }
  for (const [key, value] of Object.entries(aria)) { made.setAttribute(`aria-${key}`, value); }
  for (const [key, value] of Object.entries(attr)) { made.setAttribute(key, value); }
  made.append(...children.filter((one) => one !== null && one !== undefined));
  return made;
}

export function svg(name, attributes, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) { made.setAttribute(key, value); }
  made.append(...children);
  return made;
}

// A table that scrolls by itself. `columns`: [title, class, explanation]; `rows`: lists of contents, one a column.
export function table(label, columns, rows) {
  const head = columns.map(([title, name, about]) => el("th", { scope: "col", className: name || "", title: about || "" }, title));
  const body = rows.map((cells) => el("tr", {}, ...cells.map((content, i) => el("td", { className: columns[i][1] || "" }, content))));
  return el("div", { className: "scroll", tabIndex: 0, attr: { role: "region" }, aria: { label } },
    el("table", {}, el("thead", {}, el("tr", {}, ...head)), el("tbody", {}, ...body)));
}

// How much of the whole a value is, as a bar under or beside its text; the text says it, too.
export function bar(part, whole, name = "") {
  const fill = el("div", { className: `fill ${name}` });
  fill.style.width = `${whole > 0 ? Math.min(100, 100 * part / whole) : 0}%`;
  return el("div", { className: "track", aria: { hidden: "true" } }, fill);
}
