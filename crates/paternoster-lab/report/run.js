"use strict";
// The page of a run: what it gave, where the device's time went, and all that it was made of.

/** At most so many lines of a level have a series and are drawn; the first few at once. */
const SHOWN_AT_FIRST = 8;

function runPage(run) {
  const { main, levels } = { main: document.getElementById("report"), levels: run.levels };
  runTitle(run);
  const sections = [
    section("result", "Result", ...resultParts(run)),
    el("div", { class: "pair" },
      section("throughput", "Throughput over time", byLevel(levels, (lines) => throughput(run, lines))),
      section("latency", "Latency over time", byLevel(levels, (lines) => latencyOverTime(run, lines)))),
    el("div", { class: "pair" },
      section("distribution", "Latency distribution", byLevel(levels, distribution)),
      section("shares", "Shares against weights", ...shares(run))),
    section("device-time", "Where the device’s time went", ...deviceTime(run)),
    run.cpu ? section("cpu", "What the processors did", ...cpuTime(run.cpu)) : null,
    section("decisions", "Decisions", ...decisions(run)),
    section("parameters", "Parameters", ...parameters(run)),
  ];
  main.append(...sections.filter(Boolean));
  main.append(el("footer", {}, `Simulated in virtual time by ${run.made_by}. This file is complete: it loads nothing. Its data stand in it as JSON, in the element “data”.`));
}

function runTitle(run) {
  const { totals } = run;
  const facts = [
    ["Throughput", rate(totals.bytes_per_s)],
    ["I/Os a second", count(totals.ios_per_s)],
    ["Median latency", time(totals.p50_ns)],
    ["99th percentile", time(totals.p99_ns)],
    ["Device busy", percent(run.device_time.busy_ns / run.device_time.all_ns)],
  ];
  const links = [["result", "Result"], ["throughput", "Over time"], ["distribution", "Latency"], ["shares", "Shares"], ["device-time", "Device"], ["decisions", "Decisions"], ["parameters", "Parameters"]];
  document.getElementById("title").append(
    el("h1", {}, run.title),
    el("p", { class: "lead" }, `${run.device[0].about || run.device[0].name}. ${time(run.end_ns)} of virtual time, HZ ${run.hz}, seed ${run.seed}.`));
  document.getElementById("report").append(
    el("dl", { class: "figures" }, ...facts.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value)))),
    el("nav", { "aria-label": "Sections" }, ...links.map(([id, name]) => el("a", { href: `#${id}` }, name))));
}

/** A chart for groups and one for jobs, with a choice where there are both. */
function byLevel(levels, draw) {
  const box = el("div", {});
  const show = (name) => box.replaceChildren(draw(levels.find((level) => level.name === name).lines));
  show(levels[0].name);
  if (levels.length === 1) return box;
  return el("div", {}, choice("Lines of", levels.map(({ name }) => [name, `by ${name.slice(0, -1)}`]), levels[0].name, show), box);
}

/** Of which time shares are. */
function shareWords(run) {
  return run.together_ns > 0
    ? `A share is the part of the bytes of the ${time(run.together_ns)} in which all jobs had something to do.`
    : "No share is told: never had all jobs something to do at once.";
}

function resultParts(run) {
  const columns = ["Job", "Group", "Op", "I/Os/s", "MiB/s", "Share", "Of all", "Mean", "Median", "99 %", "99.9 %", "Highest"];
  const numbers = (line) => [count(line.ios_per_s), digits(line.bytes_per_s / 2 ** 20), line.share === null ? "–" : percent(line.share), percent(line.share_of_all), time(line.mean_ns), time(line.p50_ns), time(line.p99_ns), time(line.p999_ns), time(line.max_ns)];
  const jobs = run.table.map((line) => ({ cells: [line.name, line.group, line.op, ...numbers(line)] }));
  const groups = run.levels.find(({ name }) => name === "groups");
  const sums = groups ? groups.lines.map((line) => ({ sum: true, cells: ["all jobs", line.name, "all", ...numbers(line)] })) : [];
  const ramp = run.counted_from_ns > 0 ? ` The first ${time(run.counted_from_ns)} are not counted (ramp_time, startdelay).` : "";
  return [
    el("p", { class: "note" }, `${shareWords(run)} Of all is the part of all bytes a second; latencies are from the scheduler’s taking an I/O to its completion.${ramp}`),
    table("Result by job", columns.map((name, i) => ({ name, number: i > 2, head: i === 0 })), [...jobs, ...sums]),
  ];
}

/** The lines that have a series, and a note on those that have none. */
function drawable(run, lines) {
  const drawn = lines.filter((line) => line.series);
  const missing = lines.length - drawn.length;
  const note = missing > 0 ? el("p", { class: "note" }, `The ${drawn.length} with the most bytes are drawn, of ${lines.length}; the table has all.`) : null;
  const middle = (i) => (i + 0.5) * run.window_ns;
  const x = Array.from({ length: run.windows }, (_, i) => middle(i));
  const marks = run.counted_from_ns > 0 ? [{ x: run.counted_from_ns, name: "counted from here" }] : [];
  return { drawn, note, x, marks };
}

function throughput(run, lines) {
  const { drawn, note, x, marks } = drawable(run, lines);
  const chart = lineChart({
    label: "Throughput over time, in MiB a second",
    x, marks, xFormat: time, yFormat: (value) => `${digits(value)} MiB/s`, yTick: digits,
    hint: `MiB a second, each point over ${time(run.window_ns)}. Drag to zoom, double-click for all.`,
    lines: drawn.map((line, i) => ({
      name: line.name, look: look(i), hidden: i >= SHOWN_AT_FIRST,
      values: line.series.bytes.map((sum) => (sum * 1e9) / run.window_ns / 2 ** 20),
    })),
  });
  return el("div", {}, chart, note);
}

function latencyOverTime(run, lines) {
  const { drawn, note, x, marks } = drawable(run, lines);
  const box = el("div", {});
  const show = (kind) => box.replaceChildren(lineChart({
    label: `${kind === "mean_ns" ? "Mean" : "Highest"} latency over time`,
    x, marks, xFormat: time, yFormat: time, logarithmic: true,
    hint: `${kind === "mean_ns" ? "Mean" : "Highest"} of the I/Os that completed within ${time(run.window_ns)}.`,
    lines: drawn.map((line, i) => ({ name: line.name, look: look(i), hidden: i >= SHOWN_AT_FIRST, values: line.series[kind] })),
  }));
  show("mean_ns");
  return el("div", {}, choice("Latency", [["mean_ns", "mean"], ["max_ns", "highest"]], "mean_ns", show), box, note);
}

/** Percentiles, with as much room from 99 to 99.9 as from 90 to 99. */
function distribution(lines) {
  const places = (part) => -Math.log10(1 - part / 100);
  const all = [...new Set(lines.flatMap((line) => line.percentiles.map(([part]) => part)))].sort((a, b) => a - b);
  const named = [[50, "50"], [90, "90"], [99, "99"], [99.9, "99.9"], [99.99, "99.99"], [99.999, "99.999"]];
  const last = all[all.length - 1];
  const label = new Map(named.map(([part, name]) => [places(part).toFixed(3), name]));
  const value = (line, part) => (line.percentiles.find(([its]) => its === part) || [part, null])[1];
  return lineChart({
    label: "Latency that so many percent of the I/Os do not exceed",
    x: all.map(places), xSplits: named.filter(([part]) => part <= last).map(([part]) => places(part)),
    xFormat: (place) => `${Number((100 - 100 * 10 ** -place).toPrecision(6))} %`, xTick: (place) => `${label.get(place.toFixed(3)) || ""} %`,
    yFormat: time, logarithmic: true,
    hint: "So many percent of the I/Os took no longer than this.",
    lines: lines.slice(0, 32).map((line, i) => ({ name: line.name, look: look(i), hidden: i >= SHOWN_AT_FIRST, values: all.map((part) => value(line, part)) })),
  });
}

function shares(run) {
  const groups = run.levels.find(({ name }) => name === "groups");
  if (!groups) {
    return [
      el("p", { class: "note" }, "All jobs are in one group, so no weight divides the device between them. Shares of bytes:"),
      pairedBars({
        label: "Shares of bytes", most: 1, format: percent,
        series: [{ name: "part of all bytes", colour: "c0", pattern: "plain" }],
        rows: run.levels[0].lines.slice(0, 32).map((line) => ({ name: line.name, values: [line.share_of_all] })),
      }),
    ];
  }
  const knows = run.weights_count
    ? `${run.scheduler} divides the device by weight while all ask for it.`
    : `${run.scheduler} knows no weights: what they would entitle to is shown for comparison.`;
  return [
    el("p", { class: "note" }, knows),
    pairedBars({
      label: "Shares against weights", format: percent,
      most: Math.max(...groups.lines.flatMap((line) => [line.share, line.share_of_all, line.entitled, line.device_share])),
      series: [
        { name: "by weight", colour: "otherwise", pattern: "rising" },
        { name: "part of the device’s busy time", colour: "c2", pattern: "dots" },
        { name: "part of the bytes while all had something to do", colour: "c0", pattern: "plain" },
        { name: "part of all bytes", colour: "c1", pattern: "lines" },
      ],
      rows: groups.lines.map((line) => ({ name: line.name, note: line.weight, values: [line.entitled, line.device_share, line.share, line.share_of_all] })),
    }),
    el("p", { class: "note" }, "At each moment, those that have commands in the device share its time by their number."),
  ];
}

/** The kinds of time of a device, with their looks. */
const KINDS = [
  ["seek_ns", "moving the head", "seek", "rising"],
  ["rotation_ns", "waiting for rotation", "rotation", "dots"],
  ["transfer_ns", "transferring", "transfer", "plain"],
  ["overhead_ns", "other work for a command", "overhead", "bars"],
  ["otherwise_ns", "busy otherwise", "otherwise", "lines"],
  ["withheld_ns", "idle: the scheduler waited", "withheld", "crossed"],
  ["without_work_ns", "idle: without work", "nothing", "plain"],
];

function deviceTime(run) {
  const { device_time: spent } = run;
  const there = KINDS.filter(([key]) => spent[key] > 0);
  const rows = there.map(([key, name, hue, pattern]) => ({ cells: [el("span", {}, fillSwatch(hue, pattern), ` ${name}`), time(spent[key]), percent(spent[key] / spent.all_ns)] }));
  const bar = dividedBar("The device’s time", there.map(([key, name, hue, pattern]) => ({ name, part: spent[key] / spent.all_ns, colour: hue, pattern })));
  const several = spent.in_proportion
    ? "It works on several commands at once: the time with any command is divided in proportion to what they spent."
    : "Idle because the scheduler waited: requests were with the scheduler, and none was in the device.";
  const windows = run.device_windows;
  const parts = [el("p", { class: "note" }, several), bar,
    table("The device’s time", [{ name: "The device was", head: true }, { name: "Time", number: true }, { name: "Part", number: true }], rows)];
  if (windows.ends_ns.length < 3) return parts;
  const chart = lineChart({
    label: "The device’s time over time, in percent", stacked: true, yMost: 100, height: 220,
    x: windows.ends_ns, xFormat: time, yFormat: (value) => `${value.toFixed(1)} %`, yTick: (value) => `${value} %`,
    hint: "The same over time, stacked in the order of the table from the bottom up.",
    lines: KINDS.filter(([key]) => windows[key].some((part) => part > 0)).map(([key, name, hue]) => ({ name, look: { colour: hue, dash: [] }, values: windows[key].map((part) => 100 * part) })),
  });
  return [...parts, el("h3", {}, "Over time"), chart];
}

function cpuTime(cpu) {
  const all = cpu.cores * cpu.end_ns;
  const parts = [
    ["working", cpu.busy_ns - cpu.spinning_ns, "transfer", "plain"],
    ["waiting for the scheduler’s lock", cpu.spinning_ns, "withheld", "crossed"],
    ["idle", Math.max(all - cpu.busy_ns, 0), "nothing", "plain"],
  ].map(([name, ns, hue, pattern]) => ({ name, ns, part: ns / all, colour: hue, pattern }));
  const rows = parts.map((its) => ({ cells: [el("span", {}, fillSwatch(its.colour, its.pattern), ` ${its.name}`), time(its.ns), percent(its.part)] }));
  return [
    el("p", { class: "note" }, `${cpu.cores} processors together. The lock was held for ${percent(cpu.held_ns / cpu.end_ns)} of the time.`),
    dividedBar("The processors’ time", parts),
    table("The processors’ time", [{ name: "They were", head: true }, { name: "Time", number: true }, { name: "Part", number: true }], rows),
  ];
}

function parameters(run) {
  const named = (rows) => rows.map(([name, value]) => ({ cells: [name, value] }));
  const pair = [{ name: "What", head: true }, { name: "Value", wide: true }];
  return [
    el("h3", {}, "The command"), el("pre", { class: "command", tabindex: "0" }, run.command),
    el("h3", {}, "What was set"), table("Settings", pair, named(run.settings)),
    el("h3", {}, `Tunables of ${run.scheduler}`),
    run.tunables.length === 0 ? el("p", { class: "note" }, "It has none.") : tunables(run.tunables),
    ...run.device.flatMap((device, i) => [el("h3", {}, `${i === 0 ? "The device" : "Its disks"}: ${device.name}`), ...modelFile(device)]),
    el("h3", {}, `The host: ${run.host.name}`), ...modelFile(run.host),
    el("details", {}, el("summary", {}, `The job file: ${run.job.path}`), el("pre", { tabindex: "0" }, run.job.text)),
  ];
}

/** What the file of a device or a host says. */
function modelFile(model) {
  const error = model.held_against || "its file says no more than where it holds.";
  const words = [[model.about, ""], [model.valid, "Where it holds: "], [error, "Held against what it was not fitted to: "]];
  return [
    ...words.filter(([text]) => text).map(([text, before]) => el("p", {}, before, text)),
    model.parameters.length > 0 ? modelParameters(model) : null,
    model.text ? el("details", {}, el("summary", {}, "Its file"), el("pre", { tabindex: "0" }, model.text)) : null,
  ].filter(Boolean);
}

function tunables(list) {
  const columns = [{ name: "Name", head: true }, { name: "Value", number: true }, { name: "Default", number: true }, { name: "Unit" }, { name: "What it does", wide: true }];
  const rows = list.map((its) => ({ strong: its.value !== its.default, cells: [its.name, String(its.value), String(its.default), its.unit, its.doc] }));
  return table("Tunables", columns, rows, list.length > 12);
}

function modelParameters({ name, parameters: list }) {
  const columns = [{ name: "Name", head: true }, { name: "Value" }, { name: "Known by" }, { name: "Bounds" }, { name: "Source", wide: true }];
  const tag = (mark) => (mark ? el("span", { class: `tag ${mark}` }, mark) : "");
  const rows = list.map((its) => ({ cells: [its.key, its.value, tag(its.mark), its.bounds || "", its.source || ""] }));
  const guesses = list.filter(({ mark }) => mark === "guess").length;
  return el("div", {},
    el("p", { class: "note" }, `${list.length} parameters, of which ${guesses} are marked as guesses.`),
    table(`Parameters of ${name}`, columns, rows, true));
}
