// The replay: policies in lockstep on the same channels, with its controls and keys.
"use strict";
(() => {
  const root = document.getElementById("replay");
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  const SPEEDS = [1, 2, 4, 8, 16];
  const state = { t: 0, timer: null, views: [], cell: null, runs: [], started: false };

  const bytes = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));

  const AGES = { 1: Uint8Array, 2: Uint16Array, 4: Uint32Array };

  function unpack(packed) {
    const owner = new Int16Array(bytes(packed.owner).buffer);
    const ages = new AGES[packed.age_bytes](bytes(packed.ages).buffer);
    const { colour } = PAGE.policies[packed.index];
    const visible = colour === "#000000" ? "currentColor" : colour; // black cannot be seen on dark
    return { ...packed, owner, power: bytes(packed.power), ages, colour: visible };
  }

  const controls = html("div", { class: "controls" }, root);
  const button = (label, sign, act) => {
    const made = html("button", { type: "button", "aria-label": label, title: label }, controls, sign);
    made.addEventListener("click", act);
    return made;
  };
  button("First round", "|◀", () => go(0));
  button("One round back", "−1", () => go(state.t - 1));
  const play = button("Play", "▶ Play", () => toggle());
  play.id = "play";
  button("One round on", "+1", () => go(state.t + 1));
  button("Last round", "▶|", () => go(Infinity));
  const slider = html("input", { type: "range", min: 1, step: 1, "aria-label": "Round" }, controls);
  slider.addEventListener("input", () => go(Number(slider.value) - 1));
  const output = html("output", { id: "round", "aria-live": "polite" }, controls);
  const speedLabel = html("label", {}, controls, "Speed ");
  const speed = html("select", { id: "speed" }, speedLabel);
  for (const each of SPEEDS) html("option", { value: each }, speed, `${each} rounds/s`);
  speed.value = "4";
  speed.addEventListener("change", () => { if (state.timer) { pause(); start(); } });
  const choice = html("fieldset", { class: "legend", id: "replay-policies" }, root);
  const panels = html("div", { class: "panels" }, root);
  const key = html("div", { class: "key" }, root);
  html("span", {}, key, "Rounds since last heard:");
  AGE_CLASSES.forEach((first, i) => {
    const end = AGE_CLASSES[i + 1];
    const range = end === undefined ? `${first}+` : end - first === 1 ? `${first}` : `${first}–${end - 1}`;
    const item = html("span", { class: "class" }, key);
    svg("circle", { cx: 7, cy: 7, r: 5.5, class: `ue age${i}` },
        svg("svg", { viewBox: "0 0 14 14", "aria-hidden": "true" }, item));
    item.append(range);
  });
  html("p", { class: "note" }, root, "Space plays and pauses; ← and → step; Home and End go to the " +
    "first and last round. Colours show the ages with which the round begins. Point at a phone or a " +
    "bar to see who has what.");

  function load() {
    pause();
    state.cell = currentVariation().replay;
    root.hidden = !state.cell;
    document.getElementById("replay-note").textContent = currentVariation().notes.replay;
    if (!state.cell) return;
    state.runs = state.cell.policies.map(unpack);
    slider.max = state.cell.rounds;
    const known = state.runs.map((run) => run.name);
    const wanted = PAGE.compared.filter((name) => known.includes(name));
    choose(new Set(wanted.length ? wanted : known.slice(0, 2)));
    state.t = 0;
    show();
  }

  function choose(shown) {
    choice.replaceChildren(html("legend", {}, null, `Side by side (seed ${state.cell.seed})`));
    for (const run of state.runs) {
      const label = html("label", {}, choice);
      const box = html("input", { type: "checkbox", value: run.name }, label);
      box.checked = shown.has(run.name);
      html("span", { class: "dot" }, label).style.setProperty("--policy", run.colour);
      label.append(run.name);
    }
    arrange();
  }

  function arrange() {
    const names = [...choice.querySelectorAll("input:checked")].map((box) => box.value);
    panels.replaceChildren();
    panels.dataset.count = names.length;
    state.views = state.runs.filter((run) => names.includes(run.name))
      .map((run) => new PolicyView(run, state.cell, panels));
  }

  function show() {
    const shown = state.views.map((view) => view.run);
    const values = state.runs.flatMap((run) => run.accuracy).filter((value) => value !== null);
    const [low, high] = [Math.min(...values), Math.max(...values)];
    for (const view of state.views) view.show(state.t, shown, [low, Math.max(high, low + 1)]);
    slider.value = state.t + 1;
    slider.setAttribute("aria-valuetext", `round ${state.t + 1} of ${state.cell.rounds}`);
    output.textContent = `round ${state.t + 1} of ${state.cell.rounds}`;
  }

  function move(t) {
    state.t = Math.min(Math.max(t, 0), state.cell.rounds - 1);
    show();
  }

  function go(t) { pause(); move(t); }

  function start() {
    if (state.t + 1 >= state.cell.rounds) move(0);
    output.setAttribute("aria-live", "off");
    state.timer = setInterval(() => {
      move(state.t + 1);
      if (state.t + 1 >= state.cell.rounds) pause();
    }, 1000 / Number(speed.value));
    label();
  }

  function pause() {
    clearInterval(state.timer);
    state.timer = null;
    output.setAttribute("aria-live", "polite");
    label();
  }

  function toggle() { if (state.timer) pause(); else start(); }

  function label() {
    play.textContent = state.timer ? "⏸ Pause" : "▶ Play";
    play.setAttribute("aria-label", state.timer ? "Pause" : "Play");
    play.title = state.timer ? "Pause" : "Play";
  }

  const inView = () => {
    const box = panels.getBoundingClientRect();
    return box.top < innerHeight && box.bottom > 0;
  };
  const keys = { " ": toggle, ArrowLeft: () => go(state.t - 1), ArrowRight: () => go(state.t + 1),
                 Home: () => go(0), End: () => go(Infinity) };
  document.addEventListener("keydown", (event) => {
    const { target } = event;
    const ours = root.contains(target) || (target === document.body && inView());
    const taken = target.matches("select, input[type=checkbox]")
      || (event.key === " " && target.matches("button"));
    if (!ours || taken || !state.cell || !(event.key in keys)) return;
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    keys[event.key]();
  });

  choice.addEventListener("change", () => { arrange(); show(); });
  document.addEventListener("variation", load);
  new IntersectionObserver((entries) => {
    if (!entries.some((entry) => entry.isIntersecting) || state.started) return;
    state.started = true;
    if (!still.matches && state.cell && !state.timer && state.t === 0) start();
  }, { threshold: 0.6 }).observe(controls);
  load();
})();
