"use strict";
// Elements, units, colours and tables.

const SVG = document.querySelector("svg").namespaceURI;

/** Makes an element of that name, with attributes and children; a text is put in as text. */
function make(namespace, name, attributes, children) {
  const element = namespace ? document.createElementNS(namespace, name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(key, value);
    else element.setAttribute(key, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

const el = (name, attributes, ...children) => make(null, name, attributes, children);
const svg = (name, attributes, ...children) => make(SVG, name, attributes, children);

/** The value of a colour of the style sheet, in the present scheme. */
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

/** The look of the line of that index: eight colours, each again with other dashes. */
function look(index) {
  const dashes = [[], [7, 4], [2, 3], [10, 3, 2, 3]];
  return { colour: `c${index % 8}`, dash: dashes[(index + Math.floor(index / 8)) % 4] };
}

/** A number with about three digits. */
function digits(value) {
  const size = Math.abs(value);
  if (size >= 100 || size === 0) return Math.round(value).toLocaleString("en");
  return value.toFixed(size >= 10 ? 1 : 2);
}

/** A value in the greatest unit in which it is at least 1. */
function inUnits(value, units) {
  const fits = units.find(([, least]) => Math.abs(value) >= least) || units[units.length - 1];
  return `${digits(value / fits[1])} ${fits[0]}`;
}

const time = (ns) => (ns === 0 ? "0" : inUnits(ns, [["s", 1e9], ["ms", 1e6], ["µs", 1e3], ["ns", 1]]));
const bytes = (count) => inUnits(count, [["TiB", 2 ** 40], ["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 1024], ["B", 1]]);
const rate = (perSecond) => `${digits(perSecond / 2 ** 20)} MiB/s`;
const count = (value) => Math.round(value).toLocaleString("en");
const percent = (part) => `${(100 * part).toFixed(1)} %`;

/** What depends on the width of the page, or on its colours. */
const drawings = [];

/** Has `draw` called when the element gets another width, and when colours change. */
function onChange(element, draw) {
  let width = 0;
  const fit = () => {
    if (element.clientWidth === width) return;
    width = element.clientWidth;
    draw();
  };
  new ResizeObserver(() => requestAnimationFrame(fit)).observe(element);
  drawings.push({ fit, draw });
}
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => drawings.forEach(({ draw }) => draw()));

/**
 * A table that scrolls within itself. A column is {name, number, wide, head}; a row is {cells, sum,
 * strong}.
 */
function table(label, columns, rows, tall) {
  const cell = (column, value) => {
    const shape = { class: column.number ? "number" : column.wide ? "wide" : null };
    return column.head ? el("th", { scope: "row", ...shape }, value) : el("td", shape, value);
  };
  const head = columns.map((column) => el("th", { scope: "col", class: column.number ? "number" : null }, column.name));
  const body = rows.map((row) =>
    el("tr", { class: row.sum ? "sum" : row.strong ? "strong" : null }, ...columns.map((column, i) => cell(column, row.cells[i]))));
  return el("div", { class: tall ? "scroll tall" : "scroll", tabindex: "0", role: "region", "aria-label": label },
    el("table", {}, el("thead", {}, el("tr", {}, ...head)), el("tbody", {}, ...body)));
}

/** A section of the page, with its heading. */
function section(id, title, ...children) {
  return el("section", { id, "aria-labelledby": `${id}-title` }, el("h2", { id: `${id}-title` }, title), ...children);
}

/** A list of buttons of which one is pressed. */
function choice(label, options, chosen, choose) {
  const buttons = options.map(([value, name]) =>
    el("button", {
      type: "button",
      "aria-pressed": String(value === chosen),
      click: (event) => {
        buttons.forEach((button) => button.setAttribute("aria-pressed", String(button === event.currentTarget)));
        choose(value);
      },
    }, name));
  return el("div", { class: "tools", role: "group", "aria-label": label }, ...buttons);
}
