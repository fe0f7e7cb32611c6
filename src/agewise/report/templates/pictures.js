// Hover and the round cursor. Values are read from the lines of the pictures themselves.
"use strict";
(() => {
  const tip = document.getElementById("tip");
  const SVG = "http://www.w3.org/2000/svg";
  const charts = [...document.querySelectorAll("svg.pic")].map((element) => ({
    element, ...JSON.parse(element.dataset.chart), lines: null, cursors: [],
  }));

  // Points of a line in the units of the picture: of its path, or of its markers.
  function pointsOf(id) {
    const group = document.getElementById(id);
    if (!group) return [];
    const markers = [...group.querySelectorAll("use")];
    if (markers.length) return markers.map((use) => [Number(use.getAttribute("x")), Number(use.getAttribute("y"))]);
    const path = group.querySelector("path");
    const values = (path?.getAttribute("d").match(/-?[\d.]+(?:e-?\d+)?/g) ?? []).map(Number);
    return Array.from({ length: values.length / 2 }, (_, i) => [values[2 * i], values[2 * i + 1]]);
  }

  function linesOf(chart) {
    if (chart.lines) return chart.lines;
    chart.lines = chart.axes.flatMap((axis, place) => Object.entries(axis.series).map(([id, name]) =>
      ({ place, name, points: pointsOf(`${chart.element.dataset.name}-${id}`) })));
    return chart.lines;
  }

  const toValue = (at, [start, end], low, high) => low + (at - start) / (end - start) * (high - low);
  const toPlace = (value, [start, end], low, high) => start + (value - low) / (high - low) * (end - start);
  const xValue = (axis, x) => toValue(x, axis.x, axis.from[0], axis.from[1]);
  const yValue = (axis, y) => toValue(y, axis.y, axis.from[2], axis.from[3]);
  const shown = (value, span) => value.toFixed(span <= 1.5 ? 3 : span < 20 ? 2 : 1);

  function place(event, chart) {
    const box = chart.element.getBoundingClientRect();
    const [, , width, height] = chart.element.getAttribute("viewBox").split(" ").map(Number);
    const x = (event.clientX - box.left) * width / box.width;
    const y = (event.clientY - box.top) * height / box.height;
    const axis = chart.axes.find(({ x: [a, b], y: [c, d] }) => x >= a - 4 && x <= b + 4 && y <= c + 4 && y >= d - 4);
    return { x, y, axis };
  }

  function say(event, text) {
    tip.textContent = text;
    tip.hidden = false;
    const wide = tip.offsetWidth, left = event.pageX + 16;
    tip.style.left = `${Math.max(4, left + wide > innerWidth - 8 ? event.pageX - wide - 16 : left)}px`;
    tip.style.top = `${event.pageY + 14}px`;
  }

  function nearest(points, x) {
    return points.reduce((best, point) => Math.abs(point[0] - x) < Math.abs(best[0] - x) ? point : best);
  }

  function overRounds(event, chart, axis, x) {
    const round = Math.round(Math.min(Math.max(xValue(axis, x), 1), Math.floor(axis.from[1])));
    document.dispatchEvent(new CustomEvent("round", { detail: round }));
    const span = Math.abs(axis.from[3] - axis.from[2]);
    const at = toPlace(round, axis.x, axis.from[0], axis.from[1]);
    const values = linesOf(chart).filter((line) => chart.axes[line.place] === axis && line.points.length)
      .map((line) => [line.name, yValue(axis, nearest(line.points, at)[1])]).sort((a, b) => b[1] - a[1]);
    say(event, [`round ${round}`, ...values.map(([name, value]) => `${name}: ${shown(value, span)}`)].join("\n"));
  }

  function overPoints(event, chart, axis, x, y) {
    const near = linesOf(chart).filter((line) => chart.axes[line.place] === axis)
      .flatMap((line) => line.points.map((point) => ({ line, point, far: Math.hypot(point[0] - x, point[1] - y) })))
      .reduce((best, each) => (each.far < best.far ? each : best), { far: 14 });
    if (!near.line) { tip.hidden = true; return; }
    const spans = [Math.abs(axis.from[1] - axis.from[0]), Math.abs(axis.from[3] - axis.from[2])];
    say(event, `${near.line.name}\n${shown(xValue(axis, near.point[0]), spans[0])}, ` +
      `${shown(yValue(axis, near.point[1]), spans[1])}`);
  }

  for (const chart of charts) {
    const hasLines = chart.axes.some((axis) => Object.keys(axis.series).length);
    if (!hasLines && chart.over !== "rounds") continue;
    chart.element.addEventListener("pointermove", (event) => {
      const { x, y, axis } = place(event, chart);
      if (!axis) { tip.hidden = true; return; }
      if (chart.over === "rounds") overRounds(event, chart, axis, x);
      else overPoints(event, chart, axis, x, y);
    });
    chart.element.addEventListener("pointerleave", () => { tip.hidden = true; });
    if (chart.over === "rounds") {
      chart.element.addEventListener("click", (event) => {
        const { x, axis } = place(event, chart);
        if (axis) document.dispatchEvent(new CustomEvent("goto", { detail: Math.round(xValue(axis, x)) }));
      });
    }
  }

  // The cursor stands at the same round in all pictures over rounds.
  document.addEventListener("round", ({ detail: round }) => {
    for (const chart of charts.filter((each) => each.over === "rounds")) {
      chart.axes.forEach((axis, i) => {
        chart.cursors[i] ??= chart.element.appendChild(document.createElementNS(SVG, "line"));
        const at = toPlace(round, axis.x, axis.from[0], axis.from[1]);
        const cursor = chart.cursors[i];
        for (const [key, value] of Object.entries({ class: "cursor", x1: at, x2: at, y1: axis.y[0], y2: axis.y[1] })) {
          cursor.setAttribute(key, value);
        }
        cursor.dataset.round = round;
      });
    }
  });
})();
