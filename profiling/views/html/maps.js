"use strict";
// Maps of pages over time: cells are unpacked once, and drawn again for every view of them.
const LEFT = 150, TOP = 22, BOTTOM = 20;
const VIRIDIS = [[68,1,84],[72,40,120],[62,74,137],[49,104,142],[38,130,142],[31,158,137],
  [53,183,121],[109,205,89],[180,222,44],[253,231,37]];
const ramp = (part) => {
  const at = Math.min(Math.max(part, 0), 1) * (VIRIDIS.length - 1), low = Math.floor(at);
  const a = VIRIDIS[low], b = VIRIDIS[Math.min(low + 1, VIRIDIS.length - 1)];
  return a.map((value, i) => value + (b[i] - value) * (at - low));
};
const hex = (colour) => [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
const PHASES = {load: "#8a8f98", move: "#3b7dd8", refine: "#2aa5a0", aggregate: "#d98a1f",
  fetch: "#9a6bc9", compile: "#c94f4f"};

const bytes = (value) => {
  let unit = 0;
  while (value >= 1024 && unit < 5) { value /= 1024; unit += 1; }
  return `${value.toFixed(unit && value < 100 ? 1 : 0)} ${["B", "KiB", "MiB", "GiB", "TiB", "PiB"][unit]}`;
};
const seconds = (value) => value >= 1 ? `${value.toFixed(3)} s`
  : value >= 1e-3 ? `${(value * 1e3).toFixed(2)} ms` : `${(value * 1e6).toFixed(1)} µs`;

// A tick's text in its step's unit, with as many digits as the step needs.
const brief = (value, step) => {
  const [scale, unit] = value >= 1 || step >= 1 ? [1, "s"] : value >= 1e-3 ? [1e3, "ms"] : [1e6, "µs"];
  const digits = Math.min(Math.max(0, -Math.floor(Math.log10(step * scale) + 1e-6)), 9);
  return value ? `${(value * scale).toFixed(digits)} ${unit}` : "0 s";
};

// Cells fade into the page: strong ones are bright on dark pages and dark on light ones.
const dark = matchMedia("(prefers-color-scheme: dark)");
const shade = (part) => ramp(dark.matches ? 0.12 + 0.88 * part : 0.9 - 0.9 * part);
const mixed = (colour, part) => {
  const empty = hex(getComputedStyle(document.documentElement).getPropertyValue("--map").trim());
  const strong = dark.matches ? colour : colour.map((v) => 0.8 * v);
  return strong.map((v, i) => empty[i] + (v - empty[i]) * part);
};

function paint(layer) {
  layer.palette = new Uint32Array(256); // as a canvas keeps pixels: alpha, blue, green, red
  for (let code = 0; code < 256; code += 1) {
    const [r, g, b] = !code ? mixed([0, 0, 0], 0) : layer.colours.length
      ? mixed(hex(layer.colours[(code >> 4) - 1] || "#ffffff"), 0.4 + 0.04 * (code & 15))
      : shade(code / 254);
    layer.palette[code] = (255 << 24) | (b << 16) | (g << 8) | r;
  }
}

async function unpack(layer) {
  const packed = Uint8Array.from(atob(layer.data), (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  layer.cells = new Uint8Array(await new Response(stream).arrayBuffer());
  delete layer.data;
  layer.shades = layer.colours.length ? 15 : 254;
}

class PageMap {
  constructor(box, map) {
    Object.assign(this, {box, map, view: {x0: 0, x1: 1, y0: 0, y1: map.rows}});
    this.canvas = box.querySelector("canvas");
    this.tip = box.querySelector(".tip");
    this.layer = map.layers[0];
    this.groups = new Map();
    for (const [, group, first, rows] of map.stripes) {
      const span = this.groups.get(group) || [first, first];
      this.groups.set(group, [span[0], first + rows]);
    }
    this.fill(".layer", map.layers.map((layer) => layer.title), (at) => this.show(at));
    const names = [...this.groups.keys()].filter((name) => name !== "other");
    this.fill(".group", ["all groups", ...names], (at) => {
      [this.view.y0, this.view.y1] = at ? this.groups.get(names[at - 1]) : [0, map.rows];
      this.draw();
    });
    this.listen();
    new ResizeObserver(() => this.draw()).observe(this.canvas);
    dark.addEventListener("change", () => this.show(this.map.layers.indexOf(this.layer)));
    this.show(0);
  }

  fill(selector, titles, chosen) {
    const select = this.box.querySelector(selector);
    titles.forEach((title) => select.append(new Option(title)));
    select.addEventListener("change", () => chosen(select.selectedIndex));
  }

  async show(at) {
    this.layer = this.map.layers[at];
    if (this.layer.data) await unpack(this.layer);
    paint(this.layer);
    const cell = (this.map.end - this.map.start) / 1e9 / this.layer.columns;
    this.box.querySelector(".evidence").textContent = `${this.layer.evidence}; a cell is ` +
      `${seconds(cell)} wide; heights follow array sizes; small arrays are drawn taller, short-lived ones lower`;
    this.legend();
    this.draw();
  }

  legend() {
    const legend = this.box.querySelector(".legend");
    legend.replaceChildren();
    const add = (text, background, wide) => {
      const item = document.createElement("span"), mark = document.createElement("i");
      mark.style.background = background;
      if (wide) mark.className = "ramp";
      item.append(mark, text);
      legend.append(item);
    };
    if (this.layer.colours.length) {
      this.layer.names.forEach((name, at) => add(name, `rgb(${mixed(hex(this.layer.colours[at]), 1)})`));
    } else {
      const stops = [0, 0.33, 0.67, 1].map((part) => `rgb(${shade(part).map(Math.round)})`);
      add(`1 to ${this.format(this.layer.max)} in a cell, logarithmic`,
        `linear-gradient(90deg, ${stops})`, true);
    }
  }

  format(value) {
    return this.layer.unit === "bytes" ? bytes(value)
      : `${value >= 10 || Number.isInteger(value) ? Math.round(value).toLocaleString("en")
        : value.toFixed(1)} ${this.layer.unit}`;
  }

  area() {
    const {clientWidth: width, clientHeight: height} = this.canvas;
    return {width: Math.max(width - LEFT, 1), height: Math.max(height - TOP - BOTTOM, 1)};
  }

  draw() {
    const {canvas, view, map, layer} = this;
    if (!layer.cells || !canvas.clientWidth) return;
    const ratio = window.devicePixelRatio || 1;
    canvas.width = canvas.clientWidth * ratio;
    canvas.height = canvas.clientHeight * ratio;
    const pen = canvas.getContext("2d"), {width, height} = this.area();
    this.cells(pen, Math.round(width * ratio), Math.round(height * ratio), ratio);
    pen.scale(ratio, ratio);
    const style = getComputedStyle(document.documentElement);
    const ink = style.getPropertyValue("--ink"), soft = style.getPropertyValue("--soft");
    pen.font = "11px system-ui, sans-serif";
    pen.textBaseline = "middle";
    const y = (row) => TOP + (row - view.y0) / (view.y1 - view.y0) * height;
    const x = (time) => LEFT + ((time - map.start) / (map.end - map.start) - view.x0) /
      (view.x1 - view.x0) * width;
    let free = TOP;
    for (const [name, , first, rows, , , colour] of map.stripes) {
      const top = Math.max(y(first), TOP), end = Math.min(y(first + rows), TOP + height);
      if (end <= top) continue;
      pen.fillStyle = colour;
      pen.fillRect(LEFT - 6, top, 5, Math.max(end - top - 0.5, 0.5));
      const middle = Math.max((top + end) / 2, free); // below the name before
      if (end - top >= 3 && middle <= end + 5) {
        pen.fillStyle = ink;
        pen.textAlign = "right";
        pen.fillText(name.length > 22 ? `${name.slice(0, 20)}…` : name, LEFT - 10, middle, LEFT - 14);
        free = middle + 11;
      }
    }
    pen.save();
    pen.beginPath();
    pen.rect(LEFT, 0, width, TOP + height);
    pen.clip();
    pen.textAlign = "center";
    for (const [name, level, start, end] of map.phases) {
      const from = Math.max(x(start), LEFT), to = Math.min(x(end), LEFT + width);
      if (to <= from) continue;
      pen.globalAlpha = level > 0 ? 0.8 : 1;
      pen.fillStyle = PHASES[name] || "#7c5c3e";
      pen.fillRect(from, 2, Math.max(to - from - 0.6, 0.6), TOP - 5);
      pen.globalAlpha = 1;
      const text = level >= 0 ? `${name} ${level}` : name;
      if (pen.measureText(text).width < to - from - 4) {
        pen.fillStyle = "#fff";
        pen.fillText(text, (from + to) / 2, TOP / 2);
      }
    }
    pen.restore();
    pen.fillStyle = soft;
    const all = map.end - map.start, from = (map.start + view.x0 * all) / 1e9;
    const shown = (view.x1 - view.x0) * all / 1e9, decade = 10 ** Math.floor(Math.log10(shown / 6));
    const step = decade * [1, 2, 5, 10].find((each) => each * decade >= shown / 6 * 0.999);
    pen.textAlign = "center";
    for (let at = Math.ceil(from / step - 1e-6); at * step <= (from + shown) * 1.000001; at += 1) {
      const place = LEFT + (at * step - from) / shown * width, text = brief(at * step, step);
      const half = pen.measureText(text).width / 2;
      pen.fillText(text, Math.min(place, LEFT + width - half), TOP + height + 11);
    }
    canvas.dataset.view = [view.x0, view.x1, view.y0, view.y1].join();
  }

  // A pixel shows the strongest of the cells that fall on it, so that nothing rare is lost.
  cells(pen, wide, high, ratio) {
    const {view, layer, map} = this, {cells, palette, columns} = layer;
    const image = pen.createImageData(wide, high), out = new Uint32Array(image.data.buffer);
    const lows = new Int32Array(wide), highs = new Int32Array(wide);
    for (let i = 0; i < wide; i += 1) {
      const from = (view.x0 + (view.x1 - view.x0) * i / wide) * columns;
      const to = (view.x0 + (view.x1 - view.x0) * (i + 1) / wide) * columns;
      lows[i] = Math.min(Math.max(Math.floor(from), 0), columns - 1);
      highs[i] = Math.min(Math.max(Math.ceil(to), lows[i] + 1), columns);
    }
    const mask = layer.colours.length ? 15 : 255;
    const line = new Uint8Array(columns);
    for (let j = 0; j < high; j += 1) {
      const from = view.y0 + (view.y1 - view.y0) * j / high;
      const to = view.y0 + (view.y1 - view.y0) * (j + 1) / high;
      const first = Math.min(Math.max(Math.floor(from), 0), map.rows - 1);
      const last = Math.min(Math.max(Math.ceil(to), first + 1), map.rows);
      line.set(cells.subarray(first * columns, (first + 1) * columns));
      for (let row = first + 1; row < last; row += 1) {
        const base = row * columns;
        for (let c = lows[0]; c < highs[wide - 1]; c += 1) {
          if ((cells[base + c] & mask) > (line[c] & mask)) line[c] = cells[base + c];
        }
      }
      for (let i = 0; i < wide; i += 1) {
        let code = line[lows[i]];
        for (let c = lows[i] + 1; c < highs[i]; c += 1) {
          if ((line[c] & mask) > (code & mask)) code = line[c];
        }
        out[j * wide + i] = palette[code];
      }
    }
    pen.putImageData(image, LEFT * ratio, TOP * ratio);
  }

  zoom(factor, px = 0.5, py = 0.5, time = true, pages = true) {
    const {view, map} = this;
    const around = (low, high, part, least, most) => {
      const size = Math.min(Math.max((high - low) * factor, least), most);
      const start = low + (high - low) * part - size * part;
      const from = Math.min(Math.max(start, 0), most - size);
      return [from, from + size];
    };
    if (time) [view.x0, view.x1] = around(view.x0, view.x1, px, 4 / this.layer.columns, 1);
    if (pages) [view.y0, view.y1] = around(view.y0, view.y1, py, 4, map.rows);
    this.draw();
  }

  move(dx, dy) {
    const {view, map} = this;
    const x = Math.min(Math.max(dx, -view.x0), 1 - view.x1);
    const y = Math.min(Math.max(dy, -view.y0), map.rows - view.y1);
    view.x0 += x; view.x1 += x; view.y0 += y; view.y1 += y;
    this.draw();
  }

  reset() {
    this.view = {x0: 0, x1: 1, y0: 0, y1: this.map.rows};
    this.box.querySelector(".group").selectedIndex = 0;
    this.draw();
  }

  listen() {
    const {canvas, box} = this;
    const part = (event) => {
      const {width, height} = this.area();
      return [(event.offsetX - LEFT) / width, (event.offsetY - TOP) / height]
        .map((value) => Math.min(Math.max(value, 0), 1));
    };
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      const turn = event.deltaY || event.deltaX; // with Shift some browsers turn the wheel sideways
      this.zoom(turn > 0 ? 1.25 : 0.8, ...part(event), true, !event.shiftKey);
    }, {passive: false});
    let from = null;
    canvas.addEventListener("pointerdown", (event) => {
      from = [event.clientX, event.clientY];
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointerup", () => { from = null; });
    canvas.addEventListener("pointermove", (event) => {
      if (from) {
        const {width, height} = this.area(), {view} = this;
        this.move((from[0] - event.clientX) / width * (view.x1 - view.x0),
          (from[1] - event.clientY) / height * (view.y1 - view.y0));
        from = [event.clientX, event.clientY];
      }
      this.point(event);
    });
    canvas.addEventListener("pointerleave", () => { this.tip.hidden = true; });
    canvas.addEventListener("dblclick", () => this.reset());
    canvas.addEventListener("keydown", (event) => {
      const {view} = this, w = (view.x1 - view.x0) / 5, h = (view.y1 - view.y0) / 5;
      const keys = {"+": () => this.zoom(0.7), "-": () => this.zoom(1.4), "0": () => this.reset(),
        ArrowLeft: () => this.move(-w, 0), ArrowRight: () => this.move(w, 0),
        ArrowUp: () => this.move(0, -h), ArrowDown: () => this.move(0, h)};
      if (keys[event.key]) { keys[event.key](); event.preventDefault(); }
    });
    box.querySelector(".in").addEventListener("click", () => this.zoom(0.5));
    box.querySelector(".out").addEventListener("click", () => this.zoom(2));
    box.querySelector(".reset").addEventListener("click", () => this.reset());
  }

  point(event) {
    const {map, view, layer, tip} = this, {width, height} = this.area();
    const px = (event.offsetX - LEFT) / width, py = (event.offsetY - TOP) / height;
    tip.hidden = px < 0 || px >= 1 || py < 0 || py >= 1 || !layer.cells;
    if (tip.hidden) return;
    const row = Math.floor(view.y0 + (view.y1 - view.y0) * py);
    const column = Math.floor((view.x0 + (view.x1 - view.x0) * px) * layer.columns);
    const stripe = map.stripes.find(([, , first, rows]) => row >= first && row < first + rows);
    if (!stripe) { tip.hidden = true; return; }
    const [name, group, first, , step] = stripe, code = layer.cells[row * layer.columns + column];
    const time = map.start + (column + 0.5) / layer.columns * (map.end - map.start);
    const level = layer.colours.length ? code & 15 : code;
    const value = Math.expm1(level / layer.shades * Math.log1p(layer.max));
    const phase = map.phases.filter(([, , start, end]) => time >= start && time < end).pop();
    const lines = [`${name} (${group})`,
      `bytes ${bytes((row - first) * step)} to ${bytes((row - first + 1) * step)}`,
      `at ${seconds(time / 1e9)}${phase ? `, ${phase[0]}${phase[1] >= 0 ? ` ${phase[1]}` : ""}` : ""}`];
    lines.push(code ? `about ${this.format(value)}` : "no events");
    if (code && layer.colours.length) lines.push(`mostly ${layer.names[(code >> 4) - 1]}`);
    tip.textContent = lines.join("\n");
    tip.style.left = `${Math.min(event.offsetX + 14, this.canvas.clientWidth - 230)}px`;
    tip.style.top = `${event.offsetY + 14}px`;
  }
}

const data = JSON.parse(document.getElementById("data").textContent);
for (const box of document.querySelectorAll(".pagemap")) new PageMap(box, data[box.dataset.map]);
