"use strict";
// The page of studies: what was published beside ours, how far that is off, and how much the answer
// moves with each parameter that is not known for sure.

const KIND_NAMES = { total: "Totals", effect: "Effects of a setting", cost: "Costs", share: "Shares of groups", group: "Groups", latency: "Latencies", load: "Loads of a CPU" };

/** What a cell's error is a difference in; the others are told in percent of what was published. */
const DIFFERENCES = { share: "points", load: "points", latency: "µs" };

/** The error of a cell. */
function cellError(cell) {
  return cell.kind in DIFFERENCES ? cell.ours - cell.seed : 100 * (cell.ours / cell.seed - 1);
}

const errorUnit = (kind) => DIFFERENCES[kind] ?? "%";

/** A number with its sign; what rounds to nothing has none. */
function signed(value, unit) {
  const size = Math.abs(value).toFixed(1);
  const sign = Number(size) === 0 ? "" : value > 0 ? "+" : "−";
  return `${sign}${size} ${unit}`;
}

const withUnit = (cell) => (value) => (cell.unit === "x" ? `× ${value.toFixed(2)}` : `${digits(value)} ${cell.unit}`);

/** What is said of a cell beside its figures. */
function remark(cell) {
  if (!cell.counted) return "not counted";
  return cell.calibrated ? "◆ fitted to" : "";
}

function studyPage(data) {
  const main = document.getElementById("report");
  document.getElementById("title").append(
    el("h1", {}, data.title),
    el("p", { class: "lead" }, "Published measurements beside what the laboratory makes of the same. Parameters were fitted to the figures marked ◆ and to no others; errors are of the rest."));
  if (data.studies.length > 1) {
    main.append(el("nav", { "aria-label": "Studies" }, ...data.studies.map(({ name }) => el("a", { href: `#${name}-errors` }, name))));
  }
  data.measured.forEach((its, number) => main.append(tableSection(its, `measured-${number}`)));
  data.studies.forEach((study) => main.append(...studySections(study)));
  main.append(section("parameters", "The command", el("pre", { class: "command", tabindex: "0" }, data.command)),
    el("footer", {}, `${data.measured.length > 0 ? "Measured, and simulated in virtual time," : "Simulated in virtual time"} by ${data.made_by}. This file is complete: it loads nothing. Its data stand in it as JSON, in the element “data”.`));
}

/** A table as it is: of what was measured, or beside what was published. */
function tableSection(its, id) {
  const columns = its.columns.map((name, at) => ({ name, head: at === 0, number: at > 0 }));
  const notes = its.notes.map((note) => el("p", { class: "note" }, note));
  return section(id, its.title, ...notes, table(its.title, columns, its.rows.map((cells) => ({ cells })), true));
}

function studySections(study) {
  const id = (name) => `${study.name}-${name}`;
  const of = (kind) => study.cells.filter((cell) => cell.kind === kind);
  const bars = ["total", "effect", "cost", "latency", "load"].filter((kind) => of(kind).length > 0);
  const shares = of("share");
  return [
    section(id("errors"), `${study.name}: ${study.about}`, ...errorParts(study)),
    ...bars.map((kind) => section(id(kind), KIND_NAMES[kind], ...cellBars(study, kind, of(kind)))),
    shares.length > 0 ? section(id("shares"), KIND_NAMES.share, ...sharesAgainstEachOther(study, shares)) : null,
    ...(study.tables ?? []).map((its, number) => tableSection(its, id(`table-${number}`))),
    section(id("moves"), "How much the answer moves", ...moves(study)),
    section(id("all"), "All figures and parameters", ...allOf(study)),
  ].filter(Boolean);
}

/** What the short words of a study's figures mean. */
function wordsOf(study) {
  if (study.words.length === 0) return [];
  return [el("dl", { class: "words" }, ...study.words.map(({ word, meaning }) => el("div", {}, el("dt", {}, word), el("dd", {}, meaning))))];
}

function errorParts(study) {
  const totals = study.errors.find(({ kind }) => kind === "total");
  const facts = totals ? [["Median error of totals", totals.median], ["90th percentile", totals.p90], ["Worst", totals.worst]].map(([name, value]) => [name, `${value.toFixed(1)} %`]) : [];
  const fitted = study.cells.filter(({ calibrated }) => calibrated).length;
  facts.push(["Figures predicted", count(study.cells.filter((cell) => cell.counted && !cell.calibrated).length)], ["Figures fitted to", count(fitted)]);
  for (const percent of [5, 10, 20]) facts.push([`Predicted within ${percent} %`, `${count(study.near[`within_${percent}`])} of ${count(study.near.all)}`]);
  const columns = [{ name: "Predicted", head: true }, { name: "Figures", number: true }, { name: "Median", number: true }, { name: "90 % within", number: true }, { name: "Worst", number: true }, { name: "Which is", wide: true }];
  const rows = study.errors.map(({ kind, cells, median, p90, worst, worst_cell: cell }) => {
    const unit = errorUnit(kind);
    return { cells: [KIND_NAMES[kind].toLowerCase(), count(cells), ...[median, p90, worst].map((value) => `${value.toFixed(1)} ${unit}`), cell] };
  });
  return [
    ...wordsOf(study),
    el("dl", { class: "figures" }, ...facts.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value)))),
    el("h3", {}, "Errors of what was not fitted"),
    table("Errors", columns, rows),
    el("h3", {}, "Each error"),
    errorDots(study),
    ...study.footnotes.map((said) => el("p", {}, said)),
  ];
}

/** The least of 1, 2, 5, 10, 20, 50 and so on that is no less than the value, which is positive. */
function roundUp(value) {
  const unit = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((times) => times * unit).find((round) => round >= value * (1 - 1e-9));
}

/** A row of dots for each kind: where a dot stands is the error of a cell. Each has its own axis, which ends behind the greatest error. */
function errorDots(study) {
  const rows = study.errors.map(({ kind }) => [kind, study.cells.filter((cell) => cell.kind === kind && cell.counted)]);
  const said = study.errors.map(({ kind, median, worst }) => `${kind}: median ${median.toFixed(1)}, worst ${worst.toFixed(1)} ${errorUnit(kind)}`).join("; ");
  const plot = drawing(`The error of each figure. ${said}.`, (width) => {
    const [dots, tall, left, right] = [62, 92, 8, 8];
    const children = [];
    rows.forEach(([kind, cells], i) => {
      const top = i * tall;
      const far = roundUp(Math.max(...cells.map((cell) => Math.abs(cellError(cell))), 0.01));
      const place = (error) => left + ((error + far) / (2 * far)) * (width - left - right);
      children.push(svg("text", { x: left, y: top + 15 }, `${KIND_NAMES[kind]}, ${errorUnit(kind)}`));
      for (const part of [-1, -0.5, 0, 0.5, 1]) {
        const at = part * far;
        const anchor = part === -1 ? "start" : part === 1 ? "end" : "middle";
        const label = part === 0 ? "0" : `${at > 0 ? "+" : "−"}${Number(Math.abs(at).toPrecision(3))}`;
        children.push(svg("line", { class: part === 0 ? "axis" : "grid", x1: place(at), x2: place(at), y1: top + 20, y2: top + dots }),
          svg("text", { class: "quiet", x: place(at), y: top + dots + 14, "text-anchor": anchor }, label));
      }
      cells.forEach((cell, number) => {
        const error = cellError(cell);
        const y = top + 26 + ((number * 7) % 5) * 7;
        const hint = svg("title", {}, `${cell.id}: ${signed(error, errorUnit(kind))} ${remark(cell)}`);
        children.push(cell.calibrated
          ? svg("rect", { class: "fitted", x: place(error) - 4, y: y - 4, width: 8, height: 8, transform: `rotate(45 ${place(error)} ${y})` }, hint)
          : svg("circle", { class: "dot", cx: place(error), cy: y, r: 4 }, hint));
      });
    });
    return { height: rows.length * tall, children };
  });
  return el("figure", {}, plot, el("p", { class: "readout" }, "Dots are predicted, ◆ was fitted to. Below 0 ours is less than was published. Each row has an axis of its own."));
}

/** Published beside ours, a chart for each first word of the cells' names. */
function cellBars(study, kind, cells) {
  const parts = new Map();
  for (const cell of cells) {
    const [word] = cell.id.split(" ");
    const key = `${word} ${cell.unit}`;
    if (!parts.has(key)) parts.set(key, []);
    parts.get(key).push(cell);
  }
  const series = [{ name: "published", colour: "otherwise", pattern: "rising" }, { name: "ours", colour: "c0", pattern: "plain" }];
  const charts = [...parts.values()].map((its) => {
    const [word] = its[0].id.split(" ");
    const short = (id) => id.slice(word.length + 1).replace(/ total$/, "") || id;
    return el("div", {}, el("h3", {}, word), pairedBars({
      label: `${KIND_NAMES[kind]} of ${word}`, series, plain: true, format: withUnit(its[0]),
      rows: its.map((cell) => ({ name: short(cell.id), note: [signed(cellError(cell), errorUnit(cell.kind)), remark(cell)].filter(Boolean).join(" "), values: [cell.seed, cell.ours] })),
    }));
  });
  return [el("p", { class: "note" }, "The error of ours stands behind each name."), fillKeys(series), el("div", { class: "pair" }, ...charts)];
}

/** Published and ours of each share, as a point: on the line they are equal. */
function sharesAgainstEachOther(study, shares) {
  const most = Math.max(...shares.flatMap(({ seed, ours }) => [seed, ours])) * 1.05;
  const errors = study.errors.find(({ kind }) => kind === "share");
  const said = errors ? `Median error ${errors.median.toFixed(1)} points, worst ${errors.worst.toFixed(1)}.` : "";
  const words = [...new Set(shares.map(({ id }) => id.split(" ")[0]))];
  const plot = drawing(`Share of each group, published and ours. ${said}`, (width) => {
    const size = Math.min(width, 560);
    const [left, foot, top] = [46, 40, 8];
    const x = (value) => left + (value / most) * (size - left - 12);
    const y = (value) => size - foot - (value / most) * (size - foot - top);
    const step = most > 60 ? 20 : most > 25 ? 10 : 5;
    const ticks = Array.from({ length: Math.floor(most / step) + 1 }, (_, i) => i * step);
    const children = ticks.flatMap((tick) => [
      svg("line", { class: "grid", x1: x(tick), x2: x(tick), y1: top, y2: y(0) }), svg("line", { class: "grid", x1: x(0), x2: x(most), y1: y(tick), y2: y(tick) }),
      svg("text", { class: "quiet", x: x(tick), y: size - foot + 18, "text-anchor": "middle" }, `${tick}`),
      svg("text", { class: "quiet", x: left - 8, y: y(tick) + 4, "text-anchor": "end" }, `${tick}`),
    ]);
    children.push(svg("line", { class: "axis", x1: x(0), y1: y(0), x2: x(most), y2: y(most) }),
      svg("text", { class: "quiet", x: x(most), y: size - 4, "text-anchor": "end" }, "published, % of the total"), svg("text", { class: "quiet", x: left + 6, y: top + 14 }, "ours, % of the total"));
    shares.forEach((cell) => {
      const index = words.indexOf(cell.id.split(" ")[0]);
      const hint = svg("title", {}, `${cell.id}: published ${cell.seed.toFixed(1)}, ours ${cell.ours.toFixed(1)} % ${remark(cell)}`);
      children.push(shape(index, x(cell.seed), y(cell.ours), hint, !cell.counted));
    });
    return { height: size, children };
  });
  const keys = words.map((word, index) => el("li", {}, svg("svg", { class: "swatch", viewBox: "0 0 18 14", "aria-hidden": "true" }, shape(index, 9, 7, null)), word));
  return [el("p", { class: "note" }, `On the line both are equal. ${said} Hollow forms are not counted.`), el("figure", {}, el("ul", { class: "legend" }, ...keys), plot)];
}

/** A point whose form and colour tell that index. */
function shape(index, x, y, hint, isHollow) {
  const hue = `var(--c${index % 8})`;
  const style = isHollow ? `fill: none; stroke: ${hue}; stroke-width: 1.5` : `fill: ${hue}; fill-opacity: .75; stroke: var(--card)`;
  const forms = [
    () => svg("circle", { cx: x, cy: y, r: 5, style }, hint),
    () => svg("rect", { x: x - 4.5, y: y - 4.5, width: 9, height: 9, style }, hint),
    () => svg("path", { d: `M${x} ${y - 6} L${x + 6} ${y + 5} L${x - 6} ${y + 5} Z`, style }, hint),
    () => svg("rect", { x: x - 4.5, y: y - 4.5, width: 9, height: 9, transform: `rotate(45 ${x} ${y})`, style }, hint),
  ];
  return forms[index % 4]();
}

/** Parameters, those first that move a total most: how far at their least and at their greatest. */
function moves(study) {
  if (study.moves.length === 0) return [el("p", { class: "note" }, "This was not run: --cells-only leaves it out.")];
  const far = (move) => Math.max(...move.moved.map(({ most }) => Math.abs(most)));
  const ordered = [...study.moves].sort((a, b) => far(b) - far(a));
  const most = Math.max(...ordered.map(far), 1);
  const said = ordered.slice(0, 6).map((move) => `${move.key} ${move.moved.map((its) => `${its.value}: ${signed(its.most, "%")}`).join(", ")}`).join("; ");
  const plot = drawing(`How much totals move with each parameter, those that move them most: ${said}.`, (width) => {
    const middle = width / 2;
    const place = (value) => middle + (value / most) * (width / 2 - 72);
    const children = [];
    let y = 0;
    for (const move of ordered) {
      const { text, height } = caption(y, move.key, `${move.value} (${move.mark})`, width);
      children.push(text);
      y += height;
      for (const its of move.moved) {
        const [from, to] = [Math.min(middle, place(its.most)), Math.max(middle, place(its.most))];
        const thick = (its.median / most) * (width / 2 - 72) * Math.sign(its.most || 1);
        children.push(
          svg("rect", { class: "reach", x: from, y: y + 4, width: Math.max(to - from, 1), height: 6 }, svg("title", {}, `at ${its.value}: ${its.most_cell} ${signed(its.most, "%")}`)),
          svg("rect", { class: "middle", x: Math.min(middle, middle + thick), y, width: Math.max(Math.abs(thick), 1), height: 14 }, svg("title", {}, `at ${its.value}: the median total moves by ${its.median.toFixed(1)} %`)),
          svg("text", { class: "quiet", x: its.most < 0 ? to + 6 : from - 6, y: y + 12, "text-anchor": its.most < 0 ? "start" : "end" }, `at ${its.value}`),
          svg("text", { class: "quiet", x: its.most < 0 ? from - 5 : to + 5, y: y + 12, "text-anchor": its.most < 0 ? "end" : "start" }, signed(its.most, "%")));
        y += 19;
      }
      y += 9;
    }
    children.push(svg("line", { class: "axis", x1: middle, x2: middle, y1: 0, y2: y }));
    return { height: y, children };
  });
  const columns = [{ name: "Parameter", head: true }, { name: "Known by" }, { name: "Value", number: true }, { name: "If it were", number: true }, { name: "Median total", number: true }, { name: "Total that moves most", number: true }, { name: "Which is", wide: true }, { name: "Median error then", number: true }];
  const rows = ordered.flatMap((move) => move.moved.map((its) => ({
    cells: [move.key, el("span", { class: `tag ${move.mark}` }, move.mark), move.value, String(its.value), `${its.median.toFixed(1)} %`, signed(its.most, "%"), its.most_cell, `${its.median_error.toFixed(1)} %`],
  })));
  return [
    el("p", { class: "note" }, "Each parameter that is fitted, inferred or guessed was set to its least and its greatest, the others left. The thick bar is how far the median total moves, whatever the direction; the thin one is the total that moves most."),
    plot, el("details", {}, el("summary", {}, "As a table"), table("How much the answer moves", columns, rows, true)),
  ];
}

function allOf(study) {
  const columns = [{ name: "Figure", head: true }, { name: "Published", number: true }, { name: "Ours", number: true }, { name: "Unit" }, { name: "Error", number: true }, { name: "" }];
  const rows = study.cells.map((cell) => ({ strong: cell.calibrated, cells: [cell.id, digits(cell.seed), digits(cell.ours), cell.unit, signed(cellError(cell), errorUnit(cell.kind)), remark(cell)] }));
  const bounds = (its) => (its ? `${its[0]} to ${its[1]}` : null);
  const parameters = study.parameters.map((its) => ({ ...its, bounds: bounds(its.bounds) }));
  return [table("All figures", columns, rows, true), el("h3", {}, "Parameters"), modelParameters({ name: study.name, parameters })];
}
