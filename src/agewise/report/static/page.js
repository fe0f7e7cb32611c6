// The data of the page, its theme, the copy buttons and the choice of a setting.
"use strict";
const PAGE = JSON.parse(document.getElementById("data").textContent);

const Theme = {
  get dark() {
    const chosen = document.documentElement.dataset.theme;
    return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  },
  label() {
    document.getElementById("theme").textContent = Theme.dark ? "Light" : "Dark";
  },
  changed() {
    Theme.label();
    document.dispatchEvent(new Event("theme"));
  },
};

document.getElementById("theme").addEventListener("click", () => {
  document.documentElement.dataset.theme = Theme.dark ? "light" : "dark";
  Theme.changed();
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", Theme.changed);
Theme.label();

const chooser = document.getElementById("variation");
const currentVariation = () => PAGE.variations[chooser ? Number(chooser.value) : 0];
if (chooser) {
  chooser.addEventListener("change", () => document.dispatchEvent(new Event("variation")));
}

async function copyText(element) {
  try {
    await navigator.clipboard.writeText(element.textContent);
  } catch {
    getSelection().selectAllChildren(element);
    document.execCommand("copy");
  }
}

for (const button of document.querySelectorAll("button.copy")) {
  button.addEventListener("click", async () => {
    const source = button.dataset.copy;
    await copyText(source ? document.getElementById(source) : button.previousElementSibling);
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  });
}
