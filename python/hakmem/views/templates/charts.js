"use strict";
const charts = JSON.parse(document.getElementById("data").textContent);
const root = document.documentElement;
document.getElementById("theme").addEventListener("click", () => {
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
});
const text = (tag, content, kind) => {
  const element = document.createElement(tag);
  element.textContent = content;
  if (kind) element.className = kind;
  return element;
};
function nearest(times, time) {
  let best = 0;
  times.forEach((at, index) => { if (Math.abs(at - time) < Math.abs(times[best] - time)) best = index; });
  return best;
}
function fill(tip, chart, index) {
  const table = document.createElement("table");
  for (const series of chart.series) {
    const row = table.insertRow();
    row.insertCell().append(text("i", "", "key s" + series.colour));
    row.insertCell().textContent = series.name;
    row.insertCell().textContent = series.texts[index];
  }
  tip.replaceChildren(text("b", Number(chart.times[index].toPrecision(4)) + " s"), table);
}
for (const svg of document.querySelectorAll("svg[data-chart]")) {
  const chart = charts[svg.dataset.chart], section = svg.parentElement, cursor = svg.querySelector(".cursor");
  const tip = text("div", "", "tip"), end = chart.times[chart.times.length - 1] || 1;
  tip.hidden = true;
  section.append(tip);
  svg.addEventListener("pointermove", event => {
    const box = svg.getBoundingClientRect(), scale = chart.width / box.width;
    const index = nearest(chart.times, ((event.clientX - box.left) * scale - chart.left) / chart.plot * end);
    const x = chart.left + chart.plot * chart.times[index] / end;
    cursor.setAttribute("x1", x);
    cursor.setAttribute("x2", x);
    fill(tip, chart, index);
    tip.hidden = false;
    const right = x / scale + 24, left = x / scale - tip.offsetWidth;
    tip.style.left = (right + tip.offsetWidth > section.clientWidth ? Math.max(0, left) : right) + "px";
    tip.style.top = box.top - section.getBoundingClientRect().top + 10 + "px";
  });
  svg.addEventListener("pointerleave", () => { tip.hidden = true; cursor.setAttribute("x1", -9); cursor.setAttribute("x2", -9); });
}
