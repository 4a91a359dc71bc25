"use strict";
// Every decision of the window: who has the device, who waits and why, on a canvas and as a list.
//
//   events ──▶ history(window)   steps of each lane, who is served when, what the device did
//          ──▶ draw              rows of the canvas: sectors, scheduler, device, a row for each lane
//          ──▶ list              the events in view

const OPS = { R: "read", W: "write", T: "discard", F: "flush", Z: "zeroing" };
/** At most so many events are in view at first, and at most so many are listed. */
const IN_VIEW_AT_FIRST = 2000;
const LISTED = 400;

/** What an event says. */
function eventInWords(window, [, role, , ...its]) {
  const what = () => (its[0] === "F" ? "flush" : `${OPS[its[0]]} of ${count(its[2])} sectors at ${count(its[1])}`);
  switch (role) {
    case "Q": return `asks: ${what()}`;
    case "M": return `merged into a request of ${window.lanes[its[0]]}`;
    case "D": return `to the device: ${what()}, ${its[3] === 0 ? "at once" : `after ${time(its[3])} with the scheduler`}`;
    case "C": return `complete after ${time(its[0])} in the device`;
    case "R": return "requeued: the device could not take it";
    default: return its[0];
  }
}

/** The kinds of events that can be listed apart. */
const LISTS = [
  ["decisions", "decisions", (role) => role.length > 1],
  ["dispatches", "dispatches", (role) => role === "D" || role === "R"],
  ["rest", "arrivals, merges, completions", (role) => role === "Q" || role === "M" || role === "C"],
];

/** What the events come to: steps are [time, value] each. */
function history(window) {
  const lanes = window.lanes.map((name, i) => ({ name, inDevice: [[0, window.start.in_device[i]]], waiting: [[0, window.start.waiting[i]]] }));
  const value = (steps) => steps[steps.length - 1][1];
  const add = (steps, at, by) => steps.push([at, Math.max(value(steps) + by, 0)]);
  const serving = [];
  const idling = [];
  const device = [];
  const marks = [];
  const dispatches = [];
  const length = window.to_ns - window.from_ns;
  const requestsTo = window.requests_to_ns - window.from_ns;
  const close = (list, at) => {
    const last = list[list.length - 1];
    if (last && last.to === null) last.to = at;
  };
  const deviceDoes = (at) => {
    const sum = (kind) => lanes.reduce((total, lane) => total + value(lane[kind]), 0);
    const doing = sum("inDevice") > 0 ? "busy" : sum("waiting") > 0 ? "withheld" : "nothing";
    const last = device[device.length - 1];
    if (last && last.doing === doing) return;
    close(device, at);
    device.push({ from: at, to: null, doing });
  };
  deviceDoes(0);
  if (window.start.serving) serving.push({ from: 0, to: null, lane: window.start.serving[0], text: window.start.serving[1] });
  for (const event of window.events) {
    const [at, role, lane] = event;
    const its = lanes[lane];
    if (role === "Q") add(its.waiting, at, 1);
    else if (role === "M") add(its.waiting, at, -1);
    else if (role === "C") add(its.inDevice, at, -1);
    else if (role === "D") {
      add(its.waiting, at, -1);
      add(its.inDevice, at, 1);
      dispatches.push({ at, lane, sector: event[4], waited: event[6] });
      close(idling, at);
    } else if (role === "R") {
      add(its.waiting, at, 1);
      add(its.inDevice, at, -1);
    } else {
      if (role === "begin" || role === "end") {
        close(serving, at);
        close(idling, at);
      }
      if (role === "begin") serving.push({ from: at, to: null, lane, text: event[3] });
      if (role === "idle") {
        close(idling, at);
        idling.push({ from: at, to: null, lane, text: event[3] });
      }
      if (role === "mark") marks.push({ at, lane, text: event[3] });
    }
    deviceDoes(at);
  }
  [serving, idling].forEach((list) => close(list, length));
  close(device, requestsTo);
  return { lanes, serving, idling, device, marks, dispatches, length, requestsTo };
}

/** The index of the last of `steps` at or before `at`. */
function stepAt(steps, at, key = (step) => step[0]) {
  let [low, high] = [0, steps.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (key(steps[middle]) <= at) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

const within = (list, at) => list.find(({ from, to }) => from <= at && at < to);

/** The rows of the canvas: their heights, and how each is drawn. */
function timelineRows(past, rotational) {
  const rows = [];
  if (rotational && past.dispatches.length > 0) rows.push({ title: "where: each dispatch by its sector", height: 84, ofRequests: true, draw: drawSectors });
  if (past.serving.length > 0 || past.idling.length > 0) rows.push({ title: "scheduler: who is served; crossed where it waits for the next request", short: "scheduler: served, crossed: it waits", height: 26, draw: drawServing });
  if (past.marks.length > 0) rows.push({ title: "other decisions", height: 14, draw: drawMarksRow });
  rows.push({ title: "device: busy, idle because the scheduler waited (crossed), without work (empty)", short: "device: busy, crossed: scheduler waits", height: 16, ofRequests: true, draw: drawDevice });
  const most = (kind) => Math.max(1, ...past.lanes.flatMap((lane) => lane[kind].map(([, value]) => value)));
  const scale = { inDevice: most("inDevice"), waiting: most("waiting") };
  past.lanes.forEach((lane, i) => rows.push({
    title: `${lane.name}: in the device (up, to ${scale.inDevice}), waiting (down, to ${scale.waiting})`, short: `${lane.name}: up device, down waiting`,
    height: 44, ofRequests: true, draw: (pen) => drawLane(pen, lane, i, scale),
  }));
  return rows;
}

/** A pattern of crossed lines in that colour. */
function crossed(ctx, name) {
  const tile = document.createElement("canvas");
  tile.width = tile.height = 6;
  const pen = tile.getContext("2d");
  pen.strokeStyle = colour(name);
  pen.lineWidth = 1.2;
  pen.beginPath();
  pen.moveTo(0, 0);
  pen.lineTo(6, 6);
  pen.moveTo(0, 6);
  pen.lineTo(6, 0);
  pen.stroke();
  return ctx.createPattern(tile, "repeat");
}

function drawSectors({ ctx, past, x, width, height, view }) {
  const sectors = past.dispatches.map(({ sector }) => sector);
  const [least, most] = [sectors.reduce((a, b) => Math.min(a, b)), sectors.reduce((a, b) => Math.max(a, b))];
  for (const { at, lane, sector } of past.dispatches) {
    if (at < view[0] || at > view[1]) continue;
    ctx.fillStyle = colour(look(lane).colour);
    const y = height - 4 - ((sector - least) / Math.max(most - least, 1)) * (height - 8);
    // Lanes differ in shape as well as in colour.
    if (lane % 2 === 0) ctx.fillRect(x(at) - 1.5, y - 1.5, 4, 4);
    else {
      ctx.beginPath();
      ctx.arc(x(at), y, 2.4, 0, 7);
      ctx.fill();
    }
  }
  ctx.strokeStyle = colour("line");
  ctx.strokeRect(0.5, 0.5, width - 1, height - 1);
}

function drawSpans({ ctx, x, height, view }, spans, style) {
  for (const span of spans) {
    // What ends at the moment at which it begins has not been.
    if (span.to <= span.from || span.to < view[0] || span.from > view[1]) continue;
    const [from, to] = [x(Math.max(span.from, view[0])), x(Math.min(span.to, view[1]))];
    ctx.fillStyle = style(span);
    ctx.fillRect(from, 0, Math.max(to - from, 1), height);
  }
}

function drawServing(pen) {
  const { ctx, past, x, height, view } = pen;
  drawSpans(pen, past.serving, ({ lane }) => (lane < 0 ? colour("otherwise") : colour(look(lane).colour)));
  const idle = crossed(ctx, "card");
  const edge = colour("withheld");
  drawSpans(pen, past.idling, () => edge);
  drawSpans(pen, past.idling, () => idle);
  ctx.fillStyle = colour("card");
  for (const { from, to, lane, text } of past.serving) {
    const [left, right] = [Math.max(x(from), 0), Math.min(x(to), x(view[1]))];
    const name = lane < 0 ? text : past.lanes[lane].name;
    if (right - left > ctx.measureText(name).width + 8) ctx.fillText(name, left + 4, height / 2 + 4.5);
    ctx.fillRect(Math.round(x(from)), 0, 1, height);
  }
}

function drawMarksRow({ ctx, past, x, height, view }) {
  for (const { at, lane } of past.marks) {
    if (at < view[0] || at > view[1]) continue;
    ctx.fillStyle = lane < 0 ? colour("ink") : colour(look(lane).colour);
    ctx.beginPath();
    ctx.moveTo(x(at), 2);
    ctx.lineTo(x(at) + 4, height - 2);
    ctx.lineTo(x(at) - 4, height - 2);
    ctx.fill();
  }
}

function drawDevice(pen) {
  const styles = { busy: colour("transfer"), withheld: colour("withheld"), nothing: colour("page") };
  drawSpans(pen, pen.past.device, ({ doing }) => styles[doing]);
  const cross = crossed(pen.ctx, "card");
  drawSpans(pen, pen.past.device.filter(({ doing }) => doing === "withheld"), () => cross);
  pen.ctx.strokeStyle = colour("line");
  pen.ctx.strokeRect(0.5, 0.5, pen.width - 1, pen.height - 1);
}

function drawLane({ ctx, past, x, width, height, view }, lane, index, scale) {
  const middle = Math.round(height / 2);
  const hue = colour(look(index).colour);
  const area = (steps, most, up) => {
    for (let i = Math.max(stepAt(steps, view[0]), 0); i < steps.length && steps[i][0] <= view[1]; i++) {
      const [from, value] = steps[i];
      const to = i + 1 < steps.length ? steps[i + 1][0] : past.requestsTo;
      if (value === 0 || to <= from) continue;
      const [left, right] = [x(Math.max(from, view[0])), x(Math.min(to, view[1]))];
      const tall = (value / most) * (middle - 2);
      ctx.fillRect(left, up ? middle - tall : middle + 1, Math.max(right - left, 0.6), tall);
    }
  };
  ctx.fillStyle = hue;
  area(lane.inDevice, scale.inDevice, true);
  ctx.globalAlpha = 0.38;
  area(lane.waiting, scale.waiting, false);
  ctx.globalAlpha = 1;
  ctx.fillStyle = colour("line");
  ctx.fillRect(0, middle, width, 1);
}

/** Where requests were too many to be kept. */
function drawNotKept(ctx, from, width, height) {
  ctx.fillStyle = colour("page");
  ctx.fillRect(from, 0, width - from, height);
  ctx.fillStyle = colour("quiet");
  const text = "requests are not kept from here on";
  if (width - from > ctx.measureText(text).width + 12) ctx.fillText(text, from + 6, height / 2 + 5);
}

/** The canvas with all rows of the view, and the line of the cursor. */
function drawTimeline(state) {
  const { canvas, past, rows, view } = state;
  const width = Math.max(canvas.parentElement.clientWidth, 200);
  const [title, gap, foot] = [17, 7, 20];
  const height = rows.reduce((sum, row) => sum + row.height + title + gap, foot);
  const ratio = devicePixelRatio || 1;
  canvas.width = width * ratio;
  canvas.height = height * ratio;
  canvas.style.height = `${height}px`;
  const ctx = canvas.getContext("2d");
  ctx.scale(ratio, ratio);
  ctx.font = "13px system-ui, sans-serif";
  const x = (at) => ((at - view[0]) / (view[1] - view[0])) * width;
  let y = 0;
  for (const row of rows) {
    ctx.save();
    ctx.translate(0, y);
    ctx.fillStyle = colour("quiet");
    const fits = !row.short || ctx.measureText(row.title).width < width;
    ctx.fillText(fits ? row.title : row.short, 0, 13, width);
    ctx.translate(0, title);
    ctx.beginPath();
    ctx.rect(0, 0, width, row.height);
    ctx.clip();
    row.draw({ ctx, past, x, width, height: row.height, view });
    if (row.ofRequests && past.requestsTo < view[1]) drawNotKept(ctx, x(Math.max(past.requestsTo, view[0])), width, row.height);
    ctx.restore();
    y += row.height + title + gap;
  }
  drawTimes(ctx, state, { x, width, y });
  if (state.cursor !== null && state.cursor >= view[0] && state.cursor <= view[1]) {
    ctx.fillStyle = colour("ink");
    ctx.fillRect(Math.round(x(state.cursor)), 0, 1, y);
  }
  if (state.selection) {
    ctx.fillStyle = colour("accent");
    ctx.globalAlpha = 0.18;
    ctx.fillRect(x(state.selection[0]), 0, x(state.selection[1]) - x(state.selection[0]), y);
    ctx.globalAlpha = 1;
  }
}

/** The times below the rows. */
function drawTimes(ctx, { window, view }, { x, width, y }) {
  const step = 10 ** Math.floor(Math.log10((view[1] - view[0]) / Math.max(width / 110, 1)));
  const span = [1, 2, 5, 10].map((by) => by * step).find((by) => ((view[1] - view[0]) / by) * 110 <= width) || step * 20;
  const [first, last] = [window.from_ns + view[0], window.from_ns + view[1]];
  ctx.fillStyle = colour("quiet");
  for (let at = Math.ceil(first / span) * span; at <= last; at += span) {
    const place = x(at - window.from_ns);
    const text = exactTime(at, span);
    ctx.fillRect(Math.round(place), y - 5, 1, 5);
    const wide = ctx.measureText(text).width;
    ctx.fillText(text, Math.min(Math.max(place - wide / 2, 0), width - wide), y + 12);
  }
}

/** A time in seconds, with as many digits as tell steps of `step` apart. */
function exactTime(ns, step) {
  const places = Math.min(Math.max(9 - Math.floor(Math.log10(Math.max(step, 1))), 0), 9);
  return `${(ns / 1e9).toFixed(places)} s`;
}

/** What was so at that time. */
function momentInWords({ window, past, view }, at) {
  const step = (view[1] - view[0]) / 1000;
  const served = within(past.serving, at);
  const idle = within(past.idling, at);
  const device = within(past.device, at);
  const doing = { busy: "busy", withheld: "idle, the scheduler waited", nothing: "without work" };
  const value = (steps) => steps[Math.max(stepAt(steps, at), 0)][1];
  const lanes = past.lanes.filter((lane) => value(lane.inDevice) + value(lane.waiting) > 0).slice(0, 8);
  const words = [el("b", {}, exactTime(window.from_ns + at, step)), ": device ", el("b", {}, device ? doing[device.doing] : "–")];
  if (served) words.push("; ", el("b", {}, served.text));
  if (idle) words.push("; ", el("b", {}, idle.text));
  words.push(...lanes.flatMap((lane) => [`; ${lane.name} `, el("b", {}, `${value(lane.inDevice)} in the device, ${value(lane.waiting)} waiting`)]));
  return words;
}

/** The events in view, of the chosen kinds. */
function listEvents(state) {
  const { window, view, kinds, list, summary } = state;
  const first = stepAt(window.events, view[0] - 1) + 1;
  const chosen = [];
  let found = 0;
  for (let i = first; i < window.events.length && window.events[i][0] <= view[1]; i++) {
    const role = window.events[i][1];
    if (!LISTS.some(([kind, , fits]) => kinds.has(kind) && fits(role))) continue;
    found += 1;
    if (chosen.length < LISTED) chosen.push(window.events[i]);
  }
  const rows = chosen.map((event) => ({
    strong: event[1].length > 1,
    cells: [`${((window.from_ns + event[0]) / 1e6).toFixed(3)}`, event[2] < 0 ? "–" : window.lanes[event[2]], eventInWords(window, event)],
  }));
  const columns = [{ name: "ms", number: true }, { name: window.lanes_are }, { name: "What happened, and why", wide: true }];
  list.replaceChildren(table("Events in view", columns, rows, true));
  const cut = found > LISTED ? `; the first ${LISTED} are listed, zoom in for the others` : "";
  const places = (view[1] - view[0]) / 100;
  summary.textContent = `In view: ${exactTime(window.from_ns + view[0], places)} to ${exactTime(window.from_ns + view[1], places)}, ${count(found)} events of the chosen kinds${cut}.`;
}

/** The end of the view at first: so far that not more events are in view than can be told apart. */
function firstView(window, length) {
  const last = window.events[IN_VIEW_AT_FIRST];
  return [0, last ? Math.max(last[0], 1) : Math.max(length, 1)];
}

function decisions(run) {
  const { window } = run;
  if (!window || window.events.length === 0) return [el("p", { class: "note" }, "Nothing happened in the window; --window FROM:TO chooses another, in seconds.")];
  const past = history(window);
  const canvas = el("canvas", { class: "timeline", tabindex: "0", role: "img", "aria-label": "Timeline of the window: who has the device, who is served, who waits. The list below has the same events." });
  const state = {
    window, past, canvas, rows: timelineRows(past, run.rotational), view: firstView(window, past.length),
    cursor: null, selection: null, kinds: new Set(["decisions", "dispatches"]), list: el("div", {}), summary: el("p", { class: "readout", "aria-live": "polite" }),
    readout: el("p", { class: "readout" }, "Point at the timeline, or tap it, to read what was so at that time."),
  };
  state.show = (from, to) => {
    const length = Math.min(Math.max(to - from, 1000), Math.max(past.length, 1));
    const start = Math.min(Math.max(from, 0), Math.max(past.length - length, 0));
    state.view = [start, start + length];
    drawTimeline(state);
    listEvents(state);
  };
  handlePointer(state);
  const plot = el("div", { class: "plot" }, canvas);
  onChange(plot, () => drawTimeline(state));
  listEvents(state);
  const about = `The window from ${exactTime(window.from_ns, 1e6)} to ${exactTime(window.to_ns, 1e6)} (--window).${cutInWords(window)} Drag to zoom in.`;
  return [el("p", { class: "note" }, about), zoomButtons(state), plot, state.readout, listButtons(state), state.summary, state.list];
}

/** What of the window is not kept. */
function cutInWords(window) {
  const cut = (what, to) => (to < window.to_ns ? ` There are too many ${what} to keep all: they end at ${exactTime(to, 1e4)}.` : "");
  return cut("requests", window.requests_to_ns) + cut("decisions", window.decisions_to_ns);
}

/** Moves the view to the first decision behind it. */
function showNextDecision(state) {
  const [from, to] = state.view;
  const { events } = state.window;
  const first = stepAt(events, to) + 1;
  const next = events.slice(first).find((event) => event[1].length > 1);
  if (next) state.show(next[0] - (to - from) / 2, next[0] + (to - from) / 2);
}

function zoomButtons(state) {
  const by = (move) => () => {
    const [from, to] = state.view;
    state.show(...move(from, to, to - from));
  };
  const buttons = [
    ["◀ earlier", (from, to, length) => [from - length / 2, to - length / 2]],
    ["later ▶", (from, to, length) => [from + length / 2, to + length / 2]],
    ["zoom in", (from, to, length) => [from + length / 4, to - length / 4]],
    ["zoom out", (from, to, length) => [from - length / 2, to + length / 2]],
    ["all", () => [0, state.past.length]],
  ];
  return el("div", { class: "tools", role: "group", "aria-label": "Part of the window" },
    ...buttons.map(([name, move]) => el("button", { type: "button", click: by(move) }, name)),
    el("button", { type: "button", click: () => showNextDecision(state) }, "next decision ▶"));
}

function listButtons(state) {
  const toggle = (kind) => (event) => {
    if (!state.kinds.delete(kind)) state.kinds.add(kind);
    event.currentTarget.setAttribute("aria-pressed", String(state.kinds.has(kind)));
    listEvents(state);
  };
  return el("div", { class: "tools", role: "group", "aria-label": "Events listed" },
    ...LISTS.map(([kind, name]) => el("button", { type: "button", "aria-pressed": String(state.kinds.has(kind)), click: toggle(kind) }, name)));
}

/** A mouse that drags zooms in, a finger moves the view; keys do both. */
function handlePointer(state) {
  const { canvas } = state;
  let down = null;
  const at = (event) => state.view[0] + (event.offsetX / canvas.clientWidth) * (state.view[1] - state.view[0]);
  const point = (event) => {
    state.cursor = at(event);
    state.readout.replaceChildren(...momentInWords(state, state.cursor));
  };
  canvas.addEventListener("pointerdown", (event) => {
    down = { at: at(event), x: event.offsetX, view: state.view };
    point(event);
    drawTimeline(state);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (down && event.pointerType === "touch") {
      const moved = ((event.offsetX - down.x) / canvas.clientWidth) * (down.view[1] - down.view[0]);
      return state.show(down.view[0] - moved, down.view[1] - moved);
    }
    point(event);
    state.selection = down ? [Math.min(down.at, state.cursor), Math.max(down.at, state.cursor)] : null;
    drawTimeline(state);
  });
  const up = (event) => {
    const { selection } = state;
    state.selection = null;
    if (down && selection && Math.abs(event.offsetX - down.x) > 6) state.show(...selection);
    down = null;
  };
  canvas.addEventListener("pointerup", up);
  canvas.addEventListener("pointercancel", up);
  canvas.addEventListener("keydown", (event) => {
    const [from, to] = state.view;
    const length = to - from;
    const moves = { ArrowLeft: [-0.25, -0.25], ArrowRight: [0.25, 0.25], "+": [0.25, -0.25], "-": [-0.5, 0.5] };
    const move = moves[event.key];
    if (!move) return;
    event.preventDefault();
    state.show(from + move[0] * length, to + move[1] * length);
  });
}
