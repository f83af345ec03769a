"use strict";
// Enhancement only: reads a time off the timeline and the command for a dragged window.
// The page says the same without it, in tables. Text is set, never parsed.
(() => {
  const data = JSON.parse(document.getElementById("report-data").textContent);
  const ms = (text) => Date.parse(text);
  const clock = (at) => new Date(at).toISOString().slice(0, 19) + "Z";
  const digits = (value) => Number(value.toPrecision(3)).toLocaleString("en-US", { maximumFractionDigits: 6 });
  const STEPS = [["s", 1e9], ["ms", 1e6], ["us", 1e3], ["ns", 1]];
  const shown = (value, unit) => {
    if (value === null || value === undefined) return "-";
    if (unit === "ratio") return digits(value * 100) + " %";
    if (unit !== "ns") return digits(value);
    const [name, size] = STEPS.find((step) => Math.abs(value) >= step[1]) || STEPS[3];
    return value === 0 ? "0 s" : digits(value / size) + " " + name;
  };
  const series = data.timeline;
  const lanes = data.lanes.map((lane) => [lane.name, lane.unit, lane.rows.map((row) => [ms(row.start_at), row.group, row.value])]);
  if (series.rows.length) {
    lanes.unshift([series.title, series.unit, series.rows.map((row) => [ms(row[series.x]), row[series.group], row[series.y]])]);
  }
  const width = data.lanes.length ? data.lanes[0].bin_ns / 1e6 : 0;
  const figure = document.querySelector("[data-from]");
  if (!figure || !width) return;
  const from = Number(figure.dataset.from), to = Number(figure.dataset.to);
  const read = figure.querySelector(".readout"), picked = figure.querySelector(".picked");

  const say = (at) => {
    const bin = Math.floor(at / width) * width;
    read.replaceChildren();
    const add = (name, text) => {
      const box = read.appendChild(document.createElement("div"));
      box.appendChild(document.createElement("dt")).textContent = name;
      box.appendChild(document.createElement("dd")).textContent = text;
    };
    add("From", clock(bin));
    for (const [name, unit, rows] of lanes) {
      const here = rows.filter((row) => row[0] === bin && row[2] !== null);
      const alone = here.length === 1;
      if (here.length) add(name, here.map((row) => (alone ? "" : row[1] + " ") + shown(row[2], unit)).join(", "));
    }
    read.hidden = false;
  };

  for (const chart of figure.querySelectorAll(".chart")) {
    const svg = chart.querySelector("svg"), line = chart.querySelector(".hair"), pick = chart.querySelector(".pick");
    const left = Number(chart.dataset.left), plot = Number(chart.dataset.plot);
    let begun = null;
    const place = (event) => {
      const box = svg.getBoundingClientRect(), scale = box.width / svg.viewBox.baseVal.width;
      const x = Math.min(plot, Math.max(0, (event.clientX - box.left) / scale - left));
      return [from + (to - from) * (x / plot), (left + x) * scale];
    };
    const move = (event) => {
      const [at, x] = place(event);
      line.style.left = x + "px";
      line.hidden = false;
      say(at);
      if (!begun) return;
      pick.style.left = Math.min(x, begun[1]) + "px";
      pick.style.width = Math.abs(x - begun[1]) + "px";
      pick.hidden = false;
    };
    chart.addEventListener("pointermove", move);
    chart.addEventListener("pointerdown", (event) => { begun = place(event); move(event); });
    chart.addEventListener("pointerleave", () => { line.hidden = true; begun = null; });
    chart.addEventListener("pointerup", (event) => {
      const ends = [begun ? begun[0] : 0, place(event)[0]].sort((a, b) => a - b);
      begun = null;
      const wide = ends[1] - ends[0] >= width / 2;
      pick.hidden = !wide;
      picked.hidden = !wide;
      if (!wide) return;
      const since = Math.floor(ends[0] / width) * width, until = Math.ceil(ends[1] / width) * width;
      picked.querySelector("code").textContent = "analyze report --since " + clock(since) + " --until " + clock(until);
    });
  }
})();
