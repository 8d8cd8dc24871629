"use strict";
// The parts of the page that move: the map, the sample that is shown closely, k, the table.
// Everything is put in as text, never as markup: names come from data.
const data = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);

function unpack(text, Type) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  return new Type(bytes.buffer);
}

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

function number(value) {
  if (!Number.isFinite(value)) return "–";
  const digits = value === 0 ? 0 : Math.max(0, 2 - Math.floor(Math.log10(Math.abs(value))));
  const n = Math.min(digits, 6);
  return value.toLocaleString("en", { minimumFractionDigits: n, maximumFractionDigits: n });
}

// --- what is known -------------------------------------------------------------------------------

const points = {
  x: unpack(data.points.x, Float32Array),
  y: unpack(data.points.y, Float32Array),
  group: unpack(data.points.group, Uint16Array),
  index: unpack(data.points.index, Uint32Array),
};
const chosen = {
  point: unpack(data.chosen.point, Uint32Array),
  rank: unpack(data.chosen.rank, Uint32Array),
};
const nPoints = points.x.length;
const closeOf = new Map(); // point -> its place among the chosen
chosen.point.forEach((point, at) => { if (point < nPoints) closeOf.set(point, at); });
const curves = data.curves && { ...data.curves, values: unpack(data.curves.values, Uint16Array) };
const nearest = data.nearest.map((arm) => ({
  ...arm, at: unpack(arm.at, Uint16Array), further: unpack(arm.further, Uint8Array),
}));
const manyGroups = data.groups.length > 1;
const state = { stop: data.own_stop, group: -1, colour: data.groups.length > 1 ? "group" : "score", hover: -1, kept: -1, view: null };

const kAt = (stop) => (data.stops[stop] === null ? Infinity : data.stops[stop]);
const ownScore = (i) => points.x[i] + data.k * points.y[i]; // Eq. 7
function scoreAt(i, k) {
  return k === Infinity ? points.y[i] : points.x[i] + k * points.y[i];
}

function position(at, [columns, rows]) {
  const column = at % columns, row = Math.floor(at / columns);
  return `${(100 * column) / Math.max(columns - 1, 1)}% ${(100 * row) / Math.max(rows - 1, 1)}%`;
}

function picture(at, tag = "span") {
  const made = element(tag, { class: "thumb real" });
  made.style.backgroundPosition = position(at, data.chosen.sprite);
  return made;
}

function words(i) {
  const group = manyGroups ? `${data.groups[points.group[i]][0]}, ` : "";
  return `${group}index ${points.index[i]}, score ${number(ownScore(i))}`;
}

// --- the map -------------------------------------------------------------------------------------

const canvas = byId("map"), front = canvas.getContext("2d");
const back = document.createElement("canvas"), pen = back.getContext("2d"); // all but the rings
const MARGIN = { left: 52, right: 14, top: 14, bottom: 40 };
let place = null; // of the drawing, in CSS pixels
let drag = null;

function extent(values) {
  let low = Infinity, high = -Infinity;
  for (const value of values) { if (value < low) low = value; if (value > high) high = value; }
  const room = 0.05 * (high - low) || 1;
  return [low - room, high + room];
}
const whole = [...extent(points.x), ...extent(points.y)];
whole[2] = Math.max(whole[2], -0.02 * whole[3]); // a deviation is never under zero

function ticks(low, high, n) {
  let step = 10 ** Math.floor(Math.log10((high - low) / n));
  step *= [1, 2, 5, 10].find((m) => m * step * n >= high - low);
  const found = [];
  for (let i = Math.ceil(low / step); i * step <= high; i++) found.push(+(i * step).toPrecision(6));
  return found;
}

// From blue to orange: for any kind of sight, on white and on black.
function shade(share) {
  const stops = [[60, 110, 185], [125, 140, 155], [205, 150, 70], [230, 110, 0]];
  const at = Math.min(Math.max(share, 0), 0.9999) * (stops.length - 1), i = Math.floor(at);
  const mixed = stops[i].map((c, j) => Math.round(c + (at - i) * (stops[i + 1][j] - c)));
  return `rgb(${mixed})`;
}
const N_SHADES = 32;
const shades = Array.from({ length: N_SHADES }, (_, i) => shade(i / (N_SHADES - 1)));

let scoreRange = null;
function colourOf(i) {
  if (state.colour === "group") return data.groups[points.group[i]][1];
  scoreRange ??= (() => {
    const sorted = Float32Array.from({ length: nPoints }, (_, j) => ownScore(j)).sort();
    return [sorted[Math.floor(0.02 * nPoints)], sorted[Math.floor(0.995 * (nPoints - 1))]];
  })();
  const share = (ownScore(i) - scoreRange[0]) / (scoreRange[1] - scoreRange[0] || 1);
  return shades[Math.round(Math.min(Math.max(share, 0), 1) * (N_SHADES - 1))];
}

const xAt = (value) => place.x + ((value - place.view[0]) / (place.view[1] - place.view[0])) * place.w;
const yAt = (value) => place.y + place.h - ((value - place.view[2]) / (place.view[3] - place.view[2])) * place.h;

function draw() {
  const box = canvas.getBoundingClientRect(), scale = window.devicePixelRatio || 1;
  if (!box.width) return;
  canvas.width = back.width = Math.round(box.width * scale);
  canvas.height = back.height = Math.round(box.height * scale);
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  place = {
    x: MARGIN.left, y: MARGIN.top, view: state.view || whole,
    w: box.width - MARGIN.left - MARGIN.right, h: box.height - MARGIN.top - MARGIN.bottom,
  };
  drawAxes();
  pen.save();
  pen.beginPath();
  pen.rect(place.x, place.y, place.w, place.h);
  pen.clip();
  drawPoints();
  drawLine(ink("rare"));
  drawRegions();
  pen.restore();
  drawRings();
}

// What changes with every move of the mouse: rings around samples, and the box of a zoom.
function drawRings() {
  if (!place) return;
  const scale = window.devicePixelRatio || 1;
  front.setTransform(1, 0, 0, 1, 0, 0);
  front.clearRect(0, 0, canvas.width, canvas.height);
  front.drawImage(back, 0, 0);
  front.setTransform(scale, 0, 0, scale, 0, 0);
  for (const [i, width] of [[state.kept, 3], [state.hover, 2]]) {
    if (i < 0) continue;
    front.strokeStyle = ink("ink");
    front.lineWidth = width;
    front.beginPath();
    front.arc(xAt(points.x[i]), yAt(points.y[i]), 8, 0, 7);
    front.stroke();
  }
  if (drag && drag.moved) {
    front.strokeStyle = ink("accent");
    front.lineWidth = 1;
    front.strokeRect(drag.x, drag.y, drag.toX - drag.x, drag.toY - drag.y);
  }
}

const style = getComputedStyle(document.documentElement);
const ink = (name) => style.getPropertyValue(`--${name}`).trim();

function drawAxes() {
  pen.font = "12px system-ui, sans-serif";
  pen.lineWidth = 1;
  pen.strokeStyle = ink("line");
  pen.fillStyle = ink("soft");
  const [x0, x1, y0, y1] = place.view;
  pen.textAlign = "center";
  for (const value of ticks(x0, x1, place.w / 90)) {
    pen.beginPath();
    pen.moveTo(xAt(value), place.y);
    pen.lineTo(xAt(value), place.y + place.h);
    pen.stroke();
    pen.fillText(value, xAt(value), place.y + place.h + 15);
  }
  pen.fillText(data.axes[0], place.x + place.w / 2, place.y + place.h + 34);
  pen.textAlign = "right";
  for (const value of ticks(y0, y1, place.h / 60)) {
    pen.beginPath();
    pen.moveTo(place.x, yAt(value));
    pen.lineTo(place.x + place.w, yAt(value));
    pen.stroke();
    pen.fillText(value, place.x - 6, yAt(value) + 4);
  }
  pen.save();
  pen.translate(13, place.y + place.h / 2);
  pen.rotate(-Math.PI / 2);
  pen.textAlign = "center";
  pen.fillText(data.axes[1], 0, 0);
  pen.restore();
}

function drawPoints() {
  const radius = nPoints > 20000 ? 1.6 : nPoints > 3000 ? 2.2 : 3.2;
  pen.globalAlpha = nPoints > 20000 ? 0.45 : 0.65;
  let last = "";
  for (let i = 0; i < nPoints; i++) {
    if (state.group >= 0 && points.group[i] !== state.group) continue;
    const colour = colourOf(i);
    if (colour !== last) { pen.fillStyle = colour; last = colour; }
    const x = xAt(points.x[i]), y = yAt(points.y[i]);
    if (x < place.x - 4 || x > place.x + place.w + 4 || y < place.y - 4 || y > place.y + place.h + 4) continue;
    if (radius < 2) { pen.fillRect(x - radius, y - radius, 2 * radius, 2 * radius); continue; }
    pen.beginPath();
    pen.arc(x, y, radius, 0, 7);
    pen.fill();
  }
  pen.globalAlpha = 1;
}

// The samples on the line have the score that 5 % of all exceed, at the k of the slider.
const limits = data.limits;
function drawLine(colour) {
  const k = kAt(state.stop), limit = limits[state.stop];
  const [x0, x1, y0, y1] = place.view;
  pen.strokeStyle = colour;
  pen.lineWidth = 2;
  pen.setLineDash([7, 5]);
  pen.beginPath();
  if (k === Infinity) { pen.moveTo(xAt(x0), yAt(limit)); pen.lineTo(xAt(x1), yAt(limit)); }
  else if (k === 0) { pen.moveTo(xAt(limit), yAt(y0)); pen.lineTo(xAt(limit), yAt(y1)); }
  else { pen.moveTo(xAt(x0), yAt((limit - x0) / k)); pen.lineTo(xAt(x1), yAt((limit - x1) / k)); }
  pen.stroke();
  pen.setLineDash([]);
}

function drawRegions() {
  const [covered, steady, wavers, both] = data.regions;
  const [right, up] = [xAt(data.edges[0]), yAt(data.edges[1])];
  pen.strokeStyle = ink("soft");
  pen.lineWidth = 1;
  pen.setLineDash([2, 4]);
  pen.beginPath();
  pen.moveTo(right, place.y);
  pen.lineTo(right, place.y + place.h);
  pen.moveTo(place.x, up);
  pen.lineTo(place.x + place.w, up);
  pen.stroke();
  pen.setLineDash([]);
  pen.font = "600 12px system-ui, sans-serif";
  label(both, place.x + place.w - 6, place.y + 14, "right");
  label(wavers, place.x + 6, place.y + 14, "left");
  label(steady, place.x + place.w - 6, place.y + place.h - 6, "right");
  label(covered, place.x + 6, place.y + place.h - 6, "left");
}

function label(text, x, y, align) {
  pen.textAlign = align;
  pen.lineWidth = 4;
  pen.strokeStyle = ink("card");
  pen.strokeText(text, x, y);
  pen.fillStyle = ink("soft");
  pen.fillText(text, x, y);
}

function pointNear(x, y, reach) {
  let best = -1, least = reach * reach;
  for (let i = nPoints - 1; i >= 0; i--) {
    if (state.group >= 0 && points.group[i] !== state.group) continue;
    const dx = xAt(points.x[i]) - x, dy = yAt(points.y[i]) - y;
    // Those that have a picture go before those that have none.
    const distance = (dx * dx + dy * dy) * (closeOf.has(i) ? 0.1 : 1);
    if (distance < least) { least = distance; best = i; }
  }
  return best;
}

const tip = byId("tip");
function showTip(i) {
  tip.hidden = i < 0;
  if (i < 0) return;
  tip.replaceChildren();
  const at = closeOf.get(i);
  if (at !== undefined && data.chosen.sprite) tip.append(picture(at));
  const about = element("div");
  if (manyGroups) about.append(element("b", {}, data.groups[points.group[i]][0]), element("br"));
  about.append(`index ${points.index[i]}`, element("br"), `score ${number(ownScore(i))}`);
  tip.append(about);
  const x = xAt(points.x[i]), y = yAt(points.y[i]);
  tip.style.left = x > place.w * 0.6 ? "" : `${x + 14}px`;
  tip.style.right = x > place.w * 0.6 ? `${canvas.clientWidth - x + 14}px` : "";
  tip.style.top = y > place.h * 0.6 ? "" : `${y + 8}px`;
  tip.style.bottom = y > place.h * 0.6 ? `${canvas.clientHeight - y + 8}px` : "";
}

function hover(i) {
  if (i === state.hover) return;
  state.hover = i;
  showTip(i);
  drawRings();
}

canvas.addEventListener("pointermove", (event) => {
  if (!place) return;
  if (drag) {
    drag.toX = event.offsetX;
    drag.toY = event.offsetY;
    drag.moved ||= Math.hypot(drag.toX - drag.x, drag.toY - drag.y) > 8;
    if (drag.moved) { showTip(-1); drawRings(); return; }
  }
  hover(pointNear(event.offsetX, event.offsetY, 14));
});
canvas.addEventListener("pointerleave", () => hover(-1));
canvas.addEventListener("pointerdown", (event) => {
  if (event.pointerType === "mouse" && event.button === 0) {
    drag = { x: event.offsetX, y: event.offsetY, toX: event.offsetX, toY: event.offsetY, moved: false };
    canvas.setPointerCapture(event.pointerId);
  }
});
canvas.addEventListener("pointerup", (event) => {
  const from = drag;
  drag = null;
  if (from && from.moved) { zoom(from); return; }
  const i = pointNear(event.offsetX, event.offsetY, event.pointerType === "mouse" ? 14 : 28);
  if (i >= 0) keep(i);
});
canvas.addEventListener("pointercancel", () => { drag = null; });

function zoom({ x, y, toX, toY }) {
  const [x0, x1, y0, y1] = place.view;
  const xOf = (at) => x0 + ((at - place.x) / place.w) * (x1 - x0);
  const yOf = (at) => y0 + ((place.y + place.h - at) / place.h) * (y1 - y0);
  if (Math.abs(x - toX) > 8 && Math.abs(y - toY) > 8) {
    state.view = [xOf(Math.min(x, toX)), xOf(Math.max(x, toX)), yOf(Math.max(y, toY)), yOf(Math.min(y, toY))];
  }
  byId("unzoom").disabled = state.view === null;
  draw();
}
byId("unzoom").addEventListener("click", () => {
  state.view = null;
  byId("unzoom").disabled = true;
  draw();
});

// Arrow keys walk through the samples that can be looked at closely, by score.
canvas.addEventListener("keydown", (event) => {
  const step = { ArrowRight: -1, ArrowUp: -1, ArrowLeft: 1, ArrowDown: 1 }[event.key];
  if (event.key === "Enter" && state.hover >= 0) keep(state.hover);
  if (event.key === "Escape") hover(-1);
  if (!step) return;
  event.preventDefault();
  const walk = ranked(data.own_stop).map((at) => chosen.point[at]);
  const from = walk.indexOf(state.hover >= 0 ? state.hover : state.kept);
  const next = walk[Math.min(Math.max(from + step, 0), walk.length - 1)];
  hover(next);
  keep(next);
});

// --- one sample, closely -------------------------------------------------------------------------

function keep(i) {
  state.kept = i;
  const at = closeOf.get(i);
  for (const old of document.querySelectorAll(".kept")) old.classList.remove("kept");
  for (const own of document.querySelectorAll(`[data-at="${at}"]`)) own.classList.add("kept");
  const face = element("div", { class: "face" });
  if (at !== undefined && data.chosen.sprite) {
    const own = picture(at);
    own.setAttribute("role", "img");
    own.setAttribute("aria-label", words(i));
    face.append(own);
  }
  const name = element("div");
  if (manyGroups) {
    const dot = element("span", { class: "dot" });
    dot.style.background = data.groups[points.group[i]][1];
    name.append(dot, element("b", {}, data.groups[points.group[i]][0]), element("br"));
  }
  name.append(`index ${points.index[i]}`);
  if (at !== undefined && data.chosen.file[at]) name.append(element("br"), data.chosen.file[at]);
  if (at !== undefined && data.chosen.flag[at]) name.append(element("br"), `flagged: ${data.chosen.flag[at]}`);
  face.append(name);
  const facts = [["score", number(ownScore(i))], ["LDRM", number(points.x[i])], ["√LDRV", number(points.y[i])]];
  if (at !== undefined && chosen.rank[at]) {
    facts.push(["rank", `${chosen.rank[at].toLocaleString("en")} of ${data.n.toLocaleString("en")}`]);
  }
  const list = element("dl");
  for (const [term, value] of facts) list.append(element("dt", {}, term), element("dd", {}, value));
  byId("pin").replaceChildren(face, list, ...(at === undefined ? [] : [...course(at), ...neighbours(at)]));
  drawRings();
}

const SVG = "http://www.w3.org/2000/svg";
function course(at) {
  if (!curves) return [];
  const n = curves.steps.length, values = [];
  for (let t = 0; t < n; t++) {
    values.push(curves.low + (curves.values[at * n + t] / 65535) * (curves.high - curves.low));
  }
  const all = [...values, ...curves.band.flat()];
  const low = Math.min(...all), high = Math.max(...all);
  const x = (t) => (1000 * t) / (n - 1), y = (v) => 1000 - (1000 * (v - low)) / (high - low || 1);
  const drawing = document.createElementNS(SVG, "svg");
  drawing.setAttribute("viewBox", "0 0 1000 1000");
  drawing.setAttribute("preserveAspectRatio", "none");
  drawing.setAttribute("role", "img");
  drawing.setAttribute("aria-label", `LDR over the records, from ${number(values[0])} to ${number(values[n - 1])}`);
  const shape = (tag, points_, style) => {
    const made = document.createElementNS(SVG, tag);
    made.setAttribute("points", points_.join(" "));
    made.setAttribute("vector-effect", "non-scaling-stroke");
    made.setAttribute("style", style);
    drawing.append(made);
  };
  const edge = (q) => curves.band.map((b, t) => `${x(t)},${y(b[q])}`);
  shape("polygon", [...edge(0), ...edge(2).reverse()], "fill:var(--line);opacity:.7");
  shape("polyline", edge(1), "fill:none;stroke:var(--soft);stroke-width:1.2;stroke-dasharray:5 4");
  shape("polyline", values.map((v, t) => `${x(t)},${y(v)}`), "fill:none;stroke:var(--rare);stroke-width:2.4");
  const from = curves.steps[0].toLocaleString("en"), to = curves.steps[n - 1].toLocaleString("en");
  return [
    element("h4", {}, "Its LDR over time"), drawing,
    element("p", { class: "soft small" }, `Step ${from} to ${to}; ${number(low)} to ${number(high)}. Grey: 90 % of all samples, dashed their median.`),
  ];
}

function neighbours(at) {
  return nearest.flatMap((arm) => {
    const row = element("div", { class: "near", role: "img", "aria-label": `The ${arm.each} nearest images made by ${arm.label}` });
    for (let j = 0; j < arm.each; j++) {
      const one = element("span", { class: `thumb arm-${arm.arm}` });
      one.style.backgroundPosition = position(arm.at[at * arm.each + j], arm.sprite);
      row.append(one);
    }
    const title = element("h4", {}, "Nearest made ", element("span", { class: "soft" }, `by ${arm.label}`));
    return [title, row, element("p", { class: "soft small" }, `${arm.further[at]} % of the samples are nearer to theirs.`)];
  });
}

document.addEventListener("click", (event) => {
  const own = event.target.closest("[data-at]");
  if (!own) return;
  const point = chosen.point[own.dataset.at];
  if (point < nPoints) keep(point);
  if (!isVisible(byId("pin"))) byId("ldr-map").scrollIntoView();
});
function isVisible(box) {
  const { top, bottom } = box.getBoundingClientRect();
  return bottom > 0 && top < window.innerHeight;
}

// --- k -------------------------------------------------------------------------------------------

function ranked(stop) {
  const k = kAt(stop), found = [];
  for (let at = 0; at < chosen.point.length; at++) {
    const i = chosen.point[at];
    if (i >= nPoints || (state.group >= 0 && points.group[i] !== state.group)) continue;
    found.push([scoreAt(i, k), at]);
  }
  return found.sort((a, b) => b[0] - a[0] || a[1] - b[1]).map((pair) => pair[1]);
}

function rankPictures() {
  const order = ranked(state.stop), n = Math.min(data.n_ranked, Math.max(1, order.length >> 1));
  const ends = { highest: order.slice(0, n), lowest: order.slice(-n).reverse() };
  for (const [id, rows] of Object.entries(ends)) {
    if (byId(id)) {
      byId(id).firstElementChild.replaceChildren(...rows.map(thumb));
      byId(`${id}-words`).textContent = composition(rows);
    } else if (byId(`${id}-rows`)) {
      byId(`${id}-rows`).replaceChildren(...rows.slice(0, 16).map(tableRow));
    }
  }
}

function thumb(at) {
  const i = chosen.point[at], made = picture(at, "button");
  const about = words(i) + (data.chosen.file[at] ? `, ${data.chosen.file[at]}` : "");
  made.type = "button";
  made.dataset.at = at;
  made.title = about;
  made.setAttribute("aria-label", about);
  made.style.setProperty("--edge", data.groups[points.group[i]][1]);
  if (i === state.kept) made.classList.add("kept");
  return made;
}

function tableRow(at) {
  const i = chosen.point[at];
  const cells = [points.index[i], data.groups[points.group[i]][0], number(points.x[i]), number(points.y[i]), number(ownScore(i))];
  return element("tr", { "data-at": at }, ...cells.map((text, j) => element("td", { class: j === 1 ? "name" : "n" }, String(text))));
}

function composition(rows) {
  if (!manyGroups) return "";
  const counts = new Map();
  for (const at of rows) {
    const name = data.groups[points.group[chosen.point[at]]][0];
    counts.set(name, (counts.get(name) || 0) + 1);
  }
  const most = [...counts].sort((a, b) => b[1] - a[1]);
  const named = most.slice(0, 2).map(([name, n]) => `${n} ${name}`).join(", ");
  return most.length > 2 ? `${named}, …` : named;
}

function setStop(stop) {
  state.stop = stop;
  const k = kAt(stop), text = k === Infinity ? "∞" : number(k);
  const about = stop === data.own_stop ? " (this run)" : k === 0 ? " (LDRM alone)" : k === Infinity ? " (√LDRV alone)" : "";
  byId("k-words").textContent = text + about;
  byId("k").setAttribute("aria-valuetext", `k = ${text}${about}`);
  byId("map-k").textContent = text;
  rankPictures();
  if (data.shades) {
    const lines = byId("shades").querySelectorAll("polyline");
    data.shades.values[stop].forEach((line, j) => {
      const width = 1000 / 1.08, first = (1000 - width) / 2; // as figures.Axis leaves room
      lines[j].setAttribute("points", line.map((v, x) =>
        `${first + (width * x) / (line.length - 1)},${1000 - (1000 * v) / data.shades.top}`).join(" "));
    });
  }
  draw();
}
byId("k").addEventListener("input", (event) => setStop(+event.target.value));

// --- groups --------------------------------------------------------------------------------------

function setGroup(group) {
  state.group = group;
  if (byId("filter")) byId("filter").value = String(group);
  rankPictures();
  draw();
}
if (byId("filter")) {
  data.groups.forEach(([name], number_) => byId("filter").append(element("option", { value: number_ }, name)));
  byId("filter").addEventListener("change", (event) => setGroup(+event.target.value));
  byId("colour").addEventListener("change", (event) => { state.colour = event.target.value; draw(); });
}

for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[table.tHead.rows.length - 1].cells];
  heads.forEach((head, column) => {
    const button = element("button", { type: "button" }, ...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => sortBy(table, heads, head, column));
  });
  for (const row of table.tBodies[0].rows) {
    row.addEventListener("click", () => {
      setGroup(data.groups.findIndex(([name]) => name === row.dataset.group));
      byId("ldr-map").scrollIntoView();
    });
  }
}

function sortBy(table, heads, head, column) {
  const value = (row) => {
    const cell = row.cells[column];
    return "value" in cell.dataset ? +cell.dataset.value : cell.textContent.trim().toLowerCase();
  };
  const rising = head.getAttribute("aria-sort") === "descending" || (column === 0 && !head.hasAttribute("aria-sort"));
  heads.forEach((other) => other.removeAttribute("aria-sort"));
  head.setAttribute("aria-sort", rising ? "ascending" : "descending");
  const rows = [...table.tBodies[0].rows].sort((a, b) => {
    const [x, y] = [value(a), value(b)];
    return (x < y ? -1 : x > y ? 1 : 0) * (rising ? 1 : -1);
  });
  table.tBodies[0].append(...rows);
}

// --- begin ---------------------------------------------------------------------------------------

new ResizeObserver(draw).observe(canvas);
window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
setStop(state.stop);
const first = ranked(data.own_stop)[0];
if (first !== undefined) keep(chosen.point[first]);
