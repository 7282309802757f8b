// Line charts on a canvas: a title, a few series over one axis, what is under the pointer.

const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

export const short = (value) => {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  const size = Math.abs(value);
  if (size >= 1e9) return Number((value / 1e9).toPrecision(3)) + "G";
  if (size >= 1e6) return Number((value / 1e6).toPrecision(3)) + "M";
  if (size >= 1e4) return Number((value / 1e3).toPrecision(3)) + "k";
  if (size >= 100 || value === Math.round(value)) return String(Math.round(value));
  if (size >= 1) return value.toFixed(2);
  if (size >= 0.0001 || size === 0) return String(Number(value.toPrecision(3)));
  return value.toExponential(1).replace(".0e", "e");
};

export const percent = (value) => (value === null || value === undefined ? "–" : `${Math.round(100 * value)} %`);

export const duration = (seconds) => {
  if (seconds === null || seconds === undefined) return "–";
  const s = Math.round(seconds);
  if (s < 120) return `${s} s`;
  if (s < 7200) return `${Math.floor(s / 60)} min`;
  return `${(s / 3600).toFixed(1)} h`;
};

const ticks = (low, high, wanted) => {
  const raw = (high - low) / wanted;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= raw) ?? raw;
  const found = [];
  for (let at = Math.ceil(low / step) * step; at <= high + step * 1e-9; at += step) found.push(at);
  return found;
};

export class Chart {
  // `series(curves)` gives [{label, color, values, width}] for a run's curves.
  constructor(parent, { title, series, format = short, low = null, high = null, id }) {
    this.series = series; this.format = format; this.low = low; this.high = high; this.pointer = null;
    this.box = document.createElement("div");
    this.box.className = "chart";
    this.box.dataset.chart = id;
    const head = document.createElement("h3");
    head.append(title);
    this.value = document.createElement("span");
    head.append(this.value);
    this.canvas = document.createElement("canvas");
    this.canvas.setAttribute("role", "img");
    this.canvas.setAttribute("aria-label", title);
    this.legend = document.createElement("div");
    this.legend.className = "legend";
    this.box.append(head, this.canvas, this.legend);
    parent.append(this.box);
    this.canvas.addEventListener("pointermove", (e) => { this.pointer = e.offsetX; this.draw(); });
    this.canvas.addEventListener("pointerleave", () => { this.pointer = null; this.draw(); });
    new ResizeObserver(() => this.draw()).observe(this.canvas);
  }

  show(curves, axis, others) {
    this.axis = axis;
    const own = this.series(curves).map((s) => ({ ...s, xs: curves[axis] ?? [] }));
    const theirs = others.flatMap(({ name, color, curves: c }) =>
      this.series(c).filter((s) => s.main).map((s) => ({ ...s, xs: c[axis] ?? [], color, label: name, dash: [5, 3] })));
    this.lines = [...own, ...theirs];
    const first = own.find((s) => s.main) ?? own[0];
    const last = first ? [...first.values].reverse().find((v) => v !== null && v !== undefined) : null;
    this.value.textContent = this.format(last ?? null);
    this.box.dataset.points = String(first ? first.values.filter((v) => v !== null && v !== undefined).length : 0);
    const legend = this.lines.length > 12 ? this.lines.filter((s) => s.main) : this.lines;
    this.legend.replaceChildren(...(this.lines.length > 1 ? legend : []).map((s) => {
      const item = document.createElement("span"), key = document.createElement("i");
      key.style.background = s.color;
      item.append(key, s.label);
      return item;
    }));
    this.draw();
  }

  extent() {
    let [x0, x1, y0, y1] = [Infinity, -Infinity, this.low ?? Infinity, this.high ?? -Infinity];
    for (const { xs, values } of this.lines) {
      values.forEach((v, i) => {
        if (v === null || v === undefined || xs[i] === null || xs[i] === undefined) return;
        x0 = Math.min(x0, xs[i]); x1 = Math.max(x1, xs[i]); y0 = Math.min(y0, v); y1 = Math.max(y1, v);
      });
    }
    if (x0 > x1) return null;
    if (x0 === x1) x1 = x0 + 1;
    if (y1 - y0 < 1e-12) { y1 += Math.abs(y1) * 0.1 || 0.5; if (this.low === null) y0 -= Math.abs(y0) * 0.1 || 0.5; }
    if (this.low === null) y0 -= (y1 - y0) * 0.04;
    if (this.high === null) y1 += (y1 - y0) * 0.04;
    return [x0, x1, y0, y1];
  }

  draw() {
    const { canvas } = this, ratio = window.devicePixelRatio || 1;
    const width = canvas.clientWidth, height = canvas.clientHeight;
    if (!width || !this.lines) return;
    if (canvas.width !== Math.round(width * ratio)) { canvas.width = Math.round(width * ratio); canvas.height = Math.round(height * ratio); }
    const g = canvas.getContext("2d");
    g.setTransform(ratio, 0, 0, ratio, 0, 0);
    g.clearRect(0, 0, width, height);
    g.font = "11px system-ui, sans-serif";
    const extent = this.extent();
    if (!extent) {
      g.fillStyle = css("--dim"); g.textAlign = "center";
      g.fillText("no data yet", width / 2, height / 2);
      return;
    }
    const [x0, x1, y0, y1] = extent, left = 46, right = 8, top = 6, bottom = 18;
    const px = (x) => left + ((x - x0) / (x1 - x0)) * (width - left - right);
    const py = (y) => height - bottom - ((y - y0) / (y1 - y0)) * (height - top - bottom);
    g.strokeStyle = css("--line"); g.fillStyle = css("--dim"); g.lineWidth = 1;
    g.textAlign = "right"; g.textBaseline = "middle";
    for (const y of ticks(y0, y1, 4)) {
      g.beginPath(); g.moveTo(left, Math.round(py(y)) + 0.5); g.lineTo(width - right, Math.round(py(y)) + 0.5); g.stroke();
      g.fillText(this.format(y), left - 5, py(y));
    }
    g.textAlign = "center"; g.textBaseline = "alphabetic";
    const named = this.axis === "elapsed_s" ? duration : short;
    for (const x of ticks(x0, x1, Math.max(2, width / 110))) {
      if (px(x) > left + 8 && px(x) < width - right - 12) g.fillText(named(x), px(x), height - 5);
    }
    for (const { xs, values, color, width: thick = 1.5, dash = [] } of this.lines) {
      g.strokeStyle = color; g.lineWidth = thick; g.setLineDash(dash); g.lineJoin = "round";
      g.beginPath();
      let open = false, count = 0, lx = 0, ly = 0;
      values.forEach((v, i) => {
        if (v === null || v === undefined) { open = false; return; }
        lx = px(xs[i]); ly = py(v); count += 1;
        if (open) g.lineTo(lx, ly); else g.moveTo(lx, ly);
        open = true;
      });
      g.stroke();
      if (count === 1) { g.fillStyle = color; g.beginPath(); g.arc(lx, ly, 2.5, 0, 7); g.fill(); }
    }
    g.setLineDash([]);
    if (this.pointer !== null) this.underPointer(g, px, py, width, height);
  }

  underPointer(g, px, py, width, height) {
    const line = this.lines.find((l) => l.main) ?? this.lines[0];
    let best = -1, near = Infinity;
    line.xs.forEach((x, i) => { const d = Math.abs(px(x) - this.pointer); if (d < near) { near = d; best = i; } });
    if (best < 0) return;
    const x = line.xs[best];
    g.strokeStyle = css("--dim"); g.beginPath(); g.moveTo(px(x), 0); g.lineTo(px(x), height - 18); g.stroke();
    const rows = this.lines.filter((l) => l.values[best] !== null && l.values[best] !== undefined && !l.dash).slice(0, 6)
      .map((l) => [l.color, `${this.lines.length > 1 ? l.label + " " : ""}${this.format(l.values[best])}`]);
    const named = this.axis === "elapsed_s" ? duration : short;
    rows.unshift([css("--dim"), named(x)]);
    const wide = Math.max(...rows.map(([, text]) => g.measureText(text).width)) + 12;
    const at = px(x) + wide + 10 > width ? px(x) - wide - 6 : px(x) + 6;
    g.fillStyle = css("--bg"); g.globalAlpha = 0.92; g.fillRect(at, 4, wide, rows.length * 14 + 6); g.globalAlpha = 1;
    g.textAlign = "left"; g.textBaseline = "top";
    rows.forEach(([color, text], i) => { g.fillStyle = color; g.fillText(text, at + 6, 8 + i * 14); });
  }
}
