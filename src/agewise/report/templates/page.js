// The data of the page, its theme, the copy buttons, sorting and the choice of a setting.
"use strict";
const PAGE = JSON.parse(document.getElementById("data").textContent);

const Theme = {
  button: document.getElementById("theme"),
  get dark() {
    const chosen = document.documentElement.dataset.theme;
    return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  },
  label() {
    Theme.button.textContent = Theme.dark ? "Light" : "Dark";
  },
};
Theme.button.hidden = false;
Theme.button.addEventListener("click", () => {
  document.documentElement.dataset.theme = Theme.dark ? "light" : "dark";
  Theme.label();
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", Theme.label);
Theme.label();

// Settings of a sweep: all are in the page, one is shown.
const chooser = document.getElementById("variation");
const currentSetting = () => (chooser ? Number(chooser.value) : 0);
function showSetting() {
  for (const part of document.querySelectorAll("[data-setting]")) {
    part.hidden = Number(part.dataset.setting) !== currentSetting();
  }
  document.dispatchEvent(new Event("setting"));
}
if (chooser) {
  chooser.closest("p").hidden = false;
  chooser.addEventListener("change", showSetting);
  for (const maps of document.querySelectorAll("[data-squares]")) {
    for (const [place, index] of Object.entries(JSON.parse(maps.dataset.squares))) {
      for (const square of maps.querySelectorAll(`[id$="-square-${place}"]`)) {
        square.classList.add("clickable");
        square.addEventListener("click", () => { chooser.value = index; showSetting(); });
      }
    }
  }
  addEventListener("load", showSetting);
}

// Once the replay is there, sections that were not laid out yet are, one at a time.
document.addEventListener("replay", () => {
  const idle = window.requestIdleCallback ?? ((act) => setTimeout(act, 50));
  const sections = [...document.querySelectorAll("section")];
  const next = () => {
    sections.shift().classList.add("laid");
    if (sections.length) idle(next); else document.documentElement.dataset.whole = "";
  };
  idle(next);
}, { once: true });

async function copyText(element) {
  try {
    await navigator.clipboard.writeText(element.textContent);
  } catch {
    getSelection().selectAllChildren(element);
    document.execCommand("copy");
  }
}

for (const button of document.querySelectorAll("button.copy")) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    await copyText(button.previousElementSibling);
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  });
}

// Tables: a click on the head of a column sorts by it, numbers by size, then the other way.
const sortKey = (cell) => {
  const text = cell.textContent.trim();
  const number = parseFloat(text.replace("−", "-"));
  return Number.isNaN(number) ? text : number;
};
function compareKeys(a, b) {
  if (typeof a === typeof b) return a < b ? -1 : a > b ? 1 : 0;
  return typeof a === "number" ? 1 : -1;
}
for (const head of document.querySelectorAll("table thead th")) {
  const button = document.createElement("button");
  button.type = "button";
  button.append(...head.childNodes);
  head.append(button);
  button.addEventListener("click", () => {
    const falling = head.getAttribute("aria-sort") !== "descending";
    for (const other of head.parentNode.children) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", falling ? "descending" : "ascending");
    const body = head.closest("table").tBodies[0];
    const rows = [...body.rows].map((row) => [sortKey(row.cells[head.cellIndex]), row]);
    rows.sort(([a], [b]) => (falling ? compareKeys(b, a) : compareKeys(a, b)));
    body.append(...rows.map(([, row]) => row));
  });
}
