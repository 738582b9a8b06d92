"use strict";
// Draws one view on a canvas; positions and radii come from the page's data.
const views = JSON.parse(document.getElementById("data").textContent);
const canvas = document.getElementById("paper"), tip = document.getElementById("tip");
const pen = canvas.getContext("2d"), rows = document.querySelectorAll("tr[data-community]");
let view = Object.values(views)[0], chosen = null, found = null;
let scale = 1, left = 0, top_ = 0;

const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function fit() {
  const width = canvas.clientWidth, height = canvas.clientHeight;
  let lowX = Infinity, highX = -Infinity, lowY = Infinity, highY = -Infinity;
  view.x.forEach((x, i) => {
    const r = view.r[i], y = view.y[i];
    lowX = Math.min(lowX, x - r); highX = Math.max(highX, x + r);
    lowY = Math.min(lowY, y - r); highY = Math.max(highY, y + r);
  });
  if (!view.x.length) { lowX = lowY = -1; highX = highY = 1; }
  scale = Math.min((width - 60) / (highX - lowX || 1), (height - 60) / (highY - lowY || 1));
  left = width / 2 - scale * (lowX + highX) / 2;
  top_ = height / 2 - scale * (lowY + highY) / 2;
  draw();
}

function draw() {
  const dense = window.devicePixelRatio || 1, width = canvas.clientWidth, height = canvas.clientHeight;
  canvas.width = width * dense; canvas.height = height * dense;
  pen.setTransform(dense, 0, 0, dense, 0, 0);
  const ink = css("--ink"), edge = css("--edge"), paper = css("--paper");
  const X = i => left + scale * view.x[i], Y = i => top_ + scale * view.y[i];
  const faint = i => chosen !== null && view.community[i] !== chosen;
  const clear = Math.max(.15, .6 - view.from.length / 20000);
  view.from.forEach((a, k) => {
    const b = view.to[k], same = view.community[a] === view.community[b];
    pen.globalAlpha = faint(a) && faint(b) ? .05 : clear;
    pen.strokeStyle = same ? view.colour[a] : edge;
    pen.lineWidth = view.width[k];
    pen.beginPath(); pen.moveTo(X(a), Y(a)); pen.lineTo(X(b), Y(b)); pen.stroke();
  });
  view.x.forEach((_, i) => {
    pen.globalAlpha = faint(i) ? .15 : 1;
    pen.fillStyle = view.colour[i];
    pen.beginPath(); pen.arc(X(i), Y(i), Math.max(1.5, scale * view.r[i]), 0, 7); pen.fill();
    pen.lineWidth = i === found ? 3 : 1; pen.strokeStyle = i === found ? ink : paper; pen.stroke();
  });
  names(X, Y, faint, ink, paper);
  pen.globalAlpha = 1;
}

// A name, or its first words.
function brief(name) {
  if (name.length <= 24) return name;
  const words = name.match(/^.{1,23}(?<=[\p{L}\p{N}_])(?![\p{L}\p{N}_])/u);
  return (words ? words[0] : name.slice(0, 23)) + "…";
}

// The largest circles first, where names do not cover each other.
function names(X, Y, faint, ink, paper) {
  const taken = [], order = view.r.map((_, i) => i).sort((a, b) => view.r[b] - view.r[a]);
  if (found !== null) order.unshift(found);
  pen.font = "12px system-ui, sans-serif"; pen.textAlign = "center"; pen.textBaseline = "bottom";
  for (const i of order) {
    const name = brief(view.name[i]), half = pen.measureText(name).width / 2 + 2;
    const edge = canvas.clientWidth, y = Y(i) - Math.max(1.5, scale * view.r[i]) - 2;
    if (faint(i) || X(i) < 0 || X(i) > edge || y < 0 || y > canvas.clientHeight + 14) continue;
    const x = Math.max(half, Math.min(edge - half, X(i)));
    if (taken.some(t => x - half < t[2] && t[0] < x + half && y - 14 < t[3] && t[1] < y)) continue;
    taken.push([x - half, y - 14, x + half, y]);
    pen.globalAlpha = 1; pen.lineWidth = 3; pen.strokeStyle = paper; pen.strokeText(name, x, y);
    pen.fillStyle = ink; pen.fillText(name, x, y);
    if (taken.length > 150) break;
  }
}

function under(event) {
  const box = canvas.getBoundingClientRect();
  const x = (event.clientX - box.left - left) / scale, y = (event.clientY - box.top - top_) / scale;
  let best = null, nearest = Infinity;
  view.x.forEach((cx, i) => {
    const away = Math.hypot(cx - x, view.y[i] - y) - Math.max(view.r[i], 4 / scale);
    if (away < 0 && away < nearest) { nearest = away; best = i; }
  });
  return best;
}

function choose(community) {
  chosen = chosen === community ? null : community;
  rows.forEach(row => row.classList.toggle("chosen", Number(row.dataset.community) === chosen));
  draw();
}

let pressed = null, moved = false;
const touching = new Map();
canvas.addEventListener("pointerdown", e => {
  moved = touching.size > 0; pressed = [e.clientX - left, e.clientY - top_];
  touching.set(e.pointerId, e); canvas.setPointerCapture(e.pointerId);
});
canvas.addEventListener("pointerup", e => {
  touching.delete(e.pointerId); pressed = null;
  if (!moved) { const i = under(e); choose(i === null ? chosen : view.community[i]); }
});
canvas.addEventListener("pointercancel", e => { touching.delete(e.pointerId); pressed = null; });
canvas.addEventListener("pointermove", e => {
  if (touching.size === 2 && touching.has(e.pointerId)) {
    const other = [...touching.values()].find(t => t.pointerId !== e.pointerId), box = canvas.getBoundingClientRect();
    const distance = t => Math.hypot(t.clientX - other.clientX, t.clientY - other.clientY) || 1;
    zoom(distance(e) / distance(touching.get(e.pointerId)), other.clientX - box.left, other.clientY - box.top);
    touching.set(e.pointerId, e); moved = true;
    return;
  }
  if (pressed) { left = e.clientX - pressed[0]; top_ = e.clientY - pressed[1]; moved = true; draw(); return; }
  const i = under(e);
  tip.hidden = i === null;
  if (i !== null) {
    const box = canvas.getBoundingClientRect(), whole = view.name[i] === String(view.community[i]);
    tip.textContent = whole ? `community ${view.name[i]}` : `${view.name[i]} · community ${view.community[i]}`;
    tip.style.left = `${Math.min(e.clientX - box.left + 12, canvas.clientWidth - 160)}px`;
    tip.style.top = `${e.clientY - box.top + 12}px`;
  }
});
canvas.addEventListener("pointerleave", () => { tip.hidden = true; });
function zoom(factor, x, y) { left = x - factor * (x - left); top_ = y - factor * (y - top_); scale *= factor; draw(); }
canvas.addEventListener("wheel", e => {
  e.preventDefault();
  const box = canvas.getBoundingClientRect();
  zoom(Math.exp(-e.deltaY / 400), e.clientX - box.left, e.clientY - box.top);
}, { passive: false });
canvas.addEventListener("keydown", e => {
  const x = canvas.clientWidth / 2, y = canvas.clientHeight / 2, step = { ArrowLeft: [40, 0], ArrowRight: [-40, 0], ArrowUp: [0, 40], ArrowDown: [0, -40] }[e.key];
  if (step) { left += step[0]; top_ += step[1]; draw(); }
  else if (e.key === "+" || e.key === "=") zoom(1.2, x, y);
  else if (e.key === "-") zoom(1 / 1.2, x, y);
  else return;
  e.preventDefault();
});
rows.forEach(row => {
  row.addEventListener("click", () => choose(Number(row.dataset.community)));
  row.addEventListener("keydown", e => { if (e.key === "Enter") choose(Number(row.dataset.community)); });
});
document.getElementById("fit").addEventListener("click", fit);
document.getElementById("find").addEventListener("input", e => {
  const wanted = e.target.value.trim().toLowerCase();
  const exact = view.name.findIndex(name => name.toLowerCase() === wanted);
  const near = exact >= 0 ? exact : view.name.findIndex(name => name.toLowerCase().includes(wanted));
  found = wanted && near >= 0 ? near : null;
  draw();
});
document.querySelectorAll("[data-view]").forEach(button => button.addEventListener("click", () => {
  view = views[button.dataset.view]; found = null;
  document.querySelectorAll("[data-view]").forEach(b => b.setAttribute("aria-pressed", String(b === button)));
  fit();
}));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
new ResizeObserver(fit).observe(canvas);
