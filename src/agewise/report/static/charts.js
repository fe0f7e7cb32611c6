// Draws each chart when it comes near the window, and again when theme or choice change.
// Plotly takes longer to start than all the rest: it starts once the page can be used.
"use strict";
(() => {
  const charts = [...document.querySelectorAll(".chart")];
  const seen = new Set();
  const hidden = new Set();
  const config = {
    responsive: true, displaylogo: false,
    modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"],
  };
  const ink = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  // Black is a colour of the palette, and cannot be seen on a dark page.
  const visible = (colour) => colour.replace("#000000", Theme.dark ? "#f2f2f2" : "#000000");

  function themed(trace) {
    const made = { ...trace };
    if (trace.line) made.line = { ...trace.line, color: visible(trace.line.color) };
    if (trace.fillcolor) made.fillcolor = visible(trace.fillcolor);
    return made;
  }

  function layoutOf(chart) {
    const line = ink("--line");
    const axis = { gridcolor: line, zerolinecolor: line, linecolor: line };
    return {
      ...chart.layout,
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: "system-ui, sans-serif", size: 13, color: ink("--ink") },
      hoverlabel: { namelength: -1 },
      dragmode: matchMedia("(pointer: coarse)").matches ? false : "zoom",
      xaxis: { ...chart.layout.xaxis, ...axis },
      yaxis: { ...chart.layout.yaxis, ...axis },
    };
  }

  function draw(element) {
    const kind = element.dataset.chart;
    const chart = kind ? currentVariation().charts[kind] : PAGE.maps[Number(element.dataset.map)];
    if (!chart) {
      if (element.dataset.drawn) Plotly.purge(element);
      delete element.dataset.drawn;
      element.textContent = currentVariation().notes[kind];
      return;
    }
    if (!element.dataset.drawn) element.textContent = "";
    const traces = chart.data.filter((trace) => !hidden.has(trace.legendgroup)).map(themed);
    Plotly.react(element, traces, layoutOf(chart), config);
    element.dataset.drawn = traces.length;
  }

  const redraw = () => seen.forEach(draw);
  const watch = new IntersectionObserver((entries) => {
    for (const entry of entries.filter((each) => each.isIntersecting)) {
      watch.unobserve(entry.target);
      seen.add(entry.target);
      draw(entry.target);
    }
  }, { rootMargin: "400px" });

  function startPlotly() {
    const script = document.createElement("script");
    script.textContent = document.getElementById("plotly").textContent;
    document.head.append(script);
    charts.forEach((element) => watch.observe(element));
  }

  for (const element of charts.filter((each) => each.dataset.rows)) {
    element.style.height = `${90 + 44 * Number(element.dataset.rows)}px`;
  }
  addEventListener("load", () => requestAnimationFrame(() => setTimeout(startPlotly)));
  document.getElementById("legend").addEventListener("change", (event) => {
    const { policy } = event.target.dataset;
    if (event.target.checked) hidden.delete(policy); else hidden.add(policy);
    redraw();
  });
  document.addEventListener("theme", redraw);
  document.addEventListener("variation", redraw);
})();
