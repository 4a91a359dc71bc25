"use strict";
// Charts of lines and areas, on uPlot, and bars, as SVG.

/** Round numbers from `least` to `most` for a logarithmic axis: as few as do, at least three. */
function logarithmicSplits(least, most) {
  const within = (split) => split >= least * 0.999 && split <= most * 1.001;
  let splits = [];
  for (const steps of [[1], [1, 2, 5], [1, 1.5, 2, 3, 4, 5, 6, 7, 8, 9]]) {
    splits = [];
    for (let power = Math.floor(Math.log10(least)); power <= Math.ceil(Math.log10(most)); power++) {
      splits.push(...steps.map((step) => step * 10 ** power).filter(within));
    }
    if (splits.length >= 3) return splits;
  }
  return splits.length > 1 ? splits : [least, (least + most) / 2, most];
}

/** The range of a logarithmic axis: a little more than its values take. */
function logarithmicRange(_, least, most) {
  if (least === null || most === null) return [0.1, 10];
  return [least / 1.25, most * 1.25];
}

/** A short piece of a line as the chart draws it. */
function lineSwatch({ colour: name, dash }) {
  return svg("svg", { class: "swatch", viewBox: "0 0 26 12", "aria-hidden": "true" },
    svg("line", { x1: 0, y1: 6, x2: 26, y2: 6, stroke: `var(--${name})`, "stroke-width": 2.5, "stroke-dasharray": dash.join(" ") || null }));
}

/** The axes of a chart, in the colours of the present scheme. */
function axes(chart) {
  const font = "13px system-ui, sans-serif";
  const common = { stroke: colour("quiet"), font, grid: { stroke: colour("grid"), width: 1 }, ticks: { stroke: colour("line"), size: 4 } };
  const values = (format) => (_, splits) => splits.map((split) => (split === null ? "" : format(split)));
  const x = { ...common, values: values(chart.xTick || chart.xFormat), size: 34, space: 64 };
  if (chart.xSplits) x.splits = () => chart.xSplits;
  const y = { ...common, values: values(chart.yTick || chart.yFormat), size: 62, space: 34 };
  if (chart.logarithmic) y.splits = (_, __, least, most) => logarithmicSplits(least, most);
  return [x, y];
}

/** What the chart says in words, for those who do not see it. */
function inWords(chart) {
  const lines = chart.lines.map(({ name, values }) => {
    const known = values.filter((value) => value !== null);
    if (known.length === 0) return `${name}: nothing`;
    return `${name}: from ${chart.yFormat(Math.min(...known))} to ${chart.yFormat(Math.max(...known))}`;
  });
  return `${chart.label}. ${lines.join("; ")}.`;
}

/**
 * A chart of lines over a common x: {label, x, xFormat, lines: [{name, values, look}], yFormat},
 * and if wanted logarithmic, stacked, xTick, yTick, xSplits, height, marks: [{x, name}].
 */
function lineChart(chart) {
  const plot = el("div", { class: "plot", role: "img", "aria-label": inWords(chart) });
  const readout = el("p", { class: "readout" });
  const shown = chart.lines.map((line) => !line.hidden);
  let drawn = null;
  const keys = chart.lines.map((line, i) =>
    el("button", {
      type: "button", class: "key", "aria-pressed": String(shown[i]), title: line.name,
      click: (event) => {
        shown[i] = !shown[i];
        event.currentTarget.setAttribute("aria-pressed", String(shown[i]));
        drawn.setSeries(i + 1, { show: shown[i] });
      },
    }, lineSwatch(line.look), el("span", {}, line.name)));
  const draw = () => {
    if (drawn) drawn.destroy();
    drawn = new uPlot(plotOptions(chart, shown, plot.clientWidth, readout), plotData(chart), plot);
  };
  onChange(plot, draw);
  const figure = el("figure", {}, plot, readout);
  if (chart.lines.length > 1 && !chart.stacked) figure.append(el("div", { class: "tools", role: "group", "aria-label": "Lines shown" }, ...keys));
  return figure;
}

/** The values of a chart; of a stacked one the sums, the topmost first. */
function plotData(chart) {
  if (!chart.stacked) return [chart.x, ...chart.lines.map((line) => line.values)];
  const sum = chart.x.map(() => 0);
  const sums = chart.lines.map((line) => line.values.map((value, i) => (sum[i] += value)));
  return [chart.x, ...sums.reverse()];
}

function plotOptions(chart, shown, width, readout) {
  const line = ({ look: its }) => ({ stroke: colour(its.colour), width: 2, dash: its.dash, spanGaps: true, points: { show: chart.x.length < 3 } });
  const area = ({ look: its }) => ({ stroke: colour(its.colour), fill: colour(its.colour), width: 0.5, points: { show: false } });
  const series = chart.stacked ? chart.lines.map(area).reverse() : chart.lines.map((its, i) => ({ ...line(its), show: shown[i] }));
  const say = (u) => {
    const i = u.cursor.idx;
    const at = i === null || i === undefined ? null : chart.x[i];
    readout.replaceChildren(...(at === null ? [chart.hint || ""] : pointInWords(chart, shown, i)));
  };
  return {
    width: Math.max(width, 200),
    height: chart.height || 260,
    legend: { show: false },
    padding: [8, 26, 0, 0],
    cursor: { y: false, points: { show: !chart.stacked } },
    scales: {
      x: { time: false, range: chart.xRange ? () => chart.xRange : undefined },
      y: chart.logarithmic ? { distr: 3, range: logarithmicRange } : { range: (_, __, most) => [0, chart.yMost || Math.max(most * 1.08, 1e-9)] },
    },
    axes: axes(chart),
    series: [{}, ...series],
    hooks: { setCursor: [say], ready: [say], draw: [(u) => drawMarks(u, chart.marks || [])] },
  };
}

function pointInWords(chart, shown, i) {
  const values = chart.lines.flatMap((line, index) =>
    (shown[index] && line.values[i] !== null ? [` ${line.name} `, el("b", {}, chart.yFormat(line.values[i])), ";"] : []));
  return [el("b", {}, chart.xFormat(chart.x[i])), ":", ...values.slice(0, -1)];
}

/** Vertical lines with a name each. */
function drawMarks(u, marks) {
  const { ctx, bbox } = u;
  ctx.save();
  ctx.font = `${12 * devicePixelRatio}px system-ui, sans-serif`;
  ctx.strokeStyle = ctx.fillStyle = colour("quiet");
  ctx.setLineDash([3 * devicePixelRatio, 3 * devicePixelRatio]);
  for (const { x, name } of marks) {
    const at = u.valToPos(x, "x", true);
    if (at < bbox.left || at > bbox.left + bbox.width) continue;
    ctx.beginPath();
    ctx.moveTo(at, bbox.top);
    ctx.lineTo(at, bbox.top + bbox.height);
    ctx.stroke();
    ctx.fillText(name, at + 5 * devicePixelRatio, bbox.top + 12 * devicePixelRatio);
  }
  ctx.restore();
}

/** Patterns that tell fills apart without their colours. */
const PATTERNS = {
  plain: () => [],
  rising: () => [svg("path", { d: "M0 8 L8 0" })],
  falling: () => [svg("path", { d: "M0 0 L8 8" })],
  dots: () => [svg("circle", { cx: 4, cy: 4, r: 1.1 })],
  bars: () => [svg("path", { d: "M4 0 L4 8" })],
  lines: () => [svg("path", { d: "M0 4 L8 4" })],
  crossed: () => [svg("path", { d: "M0 0 L8 8 M0 8 L8 0" })],
};

let patterns = 0;

/** A fill of that colour and pattern: its definition, and the reference to it. */
function fill(name, pattern) {
  const id = `pattern-${patterns++}`;
  const marks = PATTERNS[pattern]();
  marks.forEach((mark) => mark.setAttribute("style", "fill: none; stroke: var(--card); stroke-width: 1.6; stroke-opacity: .75"));
  const definition = svg("pattern", { id, width: 8, height: 8, patternUnits: "userSpaceOnUse" },
    svg("rect", { width: 8, height: 8, fill: `var(--${name})` }), ...marks);
  return { definition, reference: `url(#${id})` };
}

/** The swatch of a fill. */
function fillSwatch(name, pattern) {
  const { definition, reference } = fill(name, pattern);
  return svg("svg", { class: "swatch", viewBox: "0 0 18 14", "aria-hidden": "true" },
    svg("defs", {}, definition), svg("rect", { width: 18, height: 14, rx: 3, fill: reference }));
}

/** A drawing that is as wide as the page lets it: `draw(width)` gives its height and what is in it. */
function drawing(label, draw) {
  const box = el("div", { class: "plot", role: "img", "aria-label": label });
  onChange(box, () => {
    const width = Math.max(box.clientWidth, 240);
    const { height, children } = draw(width);
    box.replaceChildren(svg("svg", { class: "bars", viewBox: `0 0 ${width} ${height}`, width, height }, ...children));
  });
  return box;
}

/** A name with a note behind it, or below it where both do not fit into the width; and its height. */
function caption(y, name, note, width) {
  const [line, wide] = [17, 7.6];
  const below = note && (name.length + note.length + 1) * wide > width;
  const place = below ? { x: 0, dy: line } : { dx: 8 };
  const text = svg("text", { x: 0, y: y + 15 }, name, note ? svg("tspan", { class: "quiet", ...place }, note) : null);
  return { text, height: below ? 22 + line : 22 };
}

/** One bar that is divided: parts are {name, part, colour, pattern}, which add up to 1. */
function dividedBar(label, parts) {
  const words = parts.map(({ name, part }) => `${name} ${percent(part)}`).join("; ");
  return drawing(`${label}: ${words}.`, (width) => {
    const children = [];
    let x = 0;
    for (const its of parts) {
      const { definition, reference } = fill(its.colour, its.pattern);
      const wide = its.part * width;
      children.push(svg("defs", {}, definition), svg("rect", { x, y: 0, width: Math.max(wide - 1, 0.5), height: 40, fill: reference }, svg("title", {}, `${its.name}: ${percent(its.part)}`)));
      x += wide;
    }
    return { height: 40, children };
  });
}

/**
 * Pairs of bars: rows are {name, values: [number or null, …]}, each value drawn as the series of
 * its place {name, colour, pattern}, against `most`; a row's `note` stands behind its name. A `plain`
 * chart does not say what the fills mean.
 */
function pairedBars(chart) {
  const said = chart.rows.map((row) => `${row.name}: ${chart.series.map((its, i) => (row.values[i] === null ? "" : `${its.name} ${chart.format(row.values[i])}`)).filter(Boolean).join(", ")}`);
  const most = chart.most || Math.max(...chart.rows.flatMap((row) => row.values)) || 1;
  const [bar, gap] = [14, 4];
  const body = drawing(`${chart.label}. ${said.join("; ")}.`, (width) => {
    const room = width - 100;
    const fills = chart.series.map((its) => fill(its.colour, its.pattern));
    const children = [svg("defs", {}, ...fills.map(({ definition }) => definition))];
    let y = 0;
    for (const row of chart.rows) {
      const { text, height } = caption(y, row.name, row.note, width);
      children.push(text);
      y += height;
      row.values.forEach((value, i) => {
        if (value === null) return;
        const wide = Math.max((value / most) * room, 1);
        children.push(svg("rect", { x: 0, y, width: wide, height: bar, rx: 2, fill: fills[i].reference }),
          svg("text", { class: "quiet", x: wide + 6, y: y + bar - 2 }, chart.format(value)));
        y += bar + gap;
      });
      y += 10;
    }
    return { height: Math.max(y, 1), children };
  });
  return el("figure", {}, chart.plain ? null : fillKeys(chart.series), body);
}

/** What the fills of bars mean. */
function fillKeys(series) {
  return el("ul", { class: "legend" }, ...series.map((its) => el("li", {}, fillSwatch(its.colour, its.pattern), its.name)));
}
