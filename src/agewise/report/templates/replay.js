// The replay: policies in lockstep on the same channels, with its controls and keys.
"use strict";
(() => {
  const root = document.getElementById("replay");
  const note = document.getElementById("replay-note");
  const still = document.querySelector(".still");
  const quiet = matchMedia("(prefers-reduced-motion: reduce)");
  const SPEEDS = [1, 2, 4, 8, 16];
  const NONE = "There are too many phones, rounds or policies to replay them here.";
  const state = { t: 0, timer: null, views: [], cell: null, runs: [], shown: null };

  async function unpack(text) {
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    const plain = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return JSON.parse(await new Response(plain).text());
  }

  // Ages at the start of each round, by Eq. 2: one more, or 0 for those whose update arrived.
  function agesOf(run, ues) {
    const lost = new Set(run.lost.map(([t, ue]) => t * ues + ue));
    let now = new Array(ues).fill(0), reached = new Set();
    run.ages = [];
    run.reached = [];
    run.owner.forEach((owners, t) => {
      run.ages.push(now);
      const arrived = new Set(owners.filter((ue) => ue >= 0 && !lost.has(t * ues + ue)));
      now = now.map((age, ue) => (arrived.has(ue) ? 0 : age + 1));
      reached = reached.union ? reached.union(arrived) : new Set([...reached, ...arrived]);
      run.reached.push(reached.size);
    });
  }

  const controls = html("div", { class: "controls" }, root);
  const ICONS = { first: "M3 3v10M13 3.5v9L6 8z", back: "M11 3.5v9L4 8z", play: "M4 2.5v11l9-5.5z",
                  pause: "M4 3h3v10H4zM9 3h3v10H9z", on: "M5 3.5v9L12 8z", last: "M13 3v10M3 3.5v9L10 8z" };
  const sign = (button, icon, text = "") => {
    button.replaceChildren();
    svg("path", { d: ICONS[icon] }, svg("svg", { class: "icon", viewBox: "0 0 16 16", "aria-hidden": "true" }, button));
    button.append(text);
  };
  const button = (label, icon, act) => {
    const made = html("button", { type: "button", "aria-label": label, title: label }, controls);
    sign(made, icon);
    made.addEventListener("click", act);
    return made;
  };
  button("First round", "first", () => go(0));
  button("One round back", "back", () => go(state.t - 1));
  const play = button("Play", "play", () => toggle());
  play.id = "play";
  button("One round on", "on", () => go(state.t + 1));
  button("Last round", "last", () => go(Infinity));
  const slider = html("input", { type: "range", min: 1, step: 1, "aria-label": "Round" }, controls);
  slider.addEventListener("input", () => go(Number(slider.value) - 1));
  const output = html("output", { id: "round", "aria-live": "polite" }, controls);
  const speed = html("select", { id: "speed" }, html("label", {}, controls, "Speed "));
  for (const each of SPEEDS) html("option", { value: each }, speed, `${each} rounds/s`);
  speed.value = "4";
  speed.addEventListener("change", () => { if (state.timer) { pause(); start(); } });
  const seedLabel = html("label", {}, controls, "Seed ");
  const seed = html("select", { id: "seed" }, seedLabel);
  seed.addEventListener("change", () => { pause(); chooseSeed(Number(seed.value)); });
  const choice = html("fieldset", { class: "legend", id: "replay-policies" }, root);
  const panels = html("div", { class: "panels" }, root);
  const key = html("div", { class: "key" }, root);
  html("span", {}, key, "Rounds since last heard from:");
  AGE_CLASSES.forEach((first, i) => {
    const end = AGE_CLASSES[i + 1];
    const range = end === undefined ? `${first}+` : end - first === 1 ? `${first}` : `${first}–${end - 1}`;
    const item = html("span", { class: "class" }, key);
    svg("circle", { cx: 7, cy: 7, r: 5.5, class: `ue age${i}` },
        svg("svg", { viewBox: "0 0 14 14", "aria-hidden": "true" }, item));
    item.append(range);
  });
  html("p", { class: "note" }, root, "Space plays and pauses, the arrow keys step, Home and End go to the " +
    "first and last round. Colours show the ages as the round begins. Point at a phone or a bar to see who has what.");

  async function load() {
    pause();
    const packed = PAGE.replays[currentSetting()];
    root.hidden = !packed;
    still.classList.toggle("shown", !packed);
    if (!packed) { note.textContent = NONE; return; }
    const first = await unpack(packed.first);
    state.cell = { ...packed, loaded: new Map([[first.seed, first]]) };
    slider.max = packed.rounds;
    const seeds = [packed.seed, ...packed.seeds].sort((a, b) => a - b);
    seed.replaceChildren(...seeds.map((each) => html("option", { value: each }, null,
      each === packed.seed ? `${each} (median)` : `${each}`)));
    seed.value = packed.seed;
    seedLabel.hidden = seeds.length < 2;
    await chooseSeed(packed.seed);
    document.documentElement.dataset.replay = "ready";
  }

  async function chooseSeed(number) {
    const { cell } = state;
    if (!cell.loaded.has(number)) {
      const others = document.getElementById("seeds").textContent.split(" ");
      cell.loaded.set(number, await unpack(others[cell.seeds.indexOf(number)]));
    }
    const chosen = cell.loaded.get(number);
    chosen.layout ??= layoutOf(chosen, cell.ues);
    Object.assign(cell, { layout: chosen.layout, seed: number });
    for (const run of chosen.runs) {
      run.name = PAGE.policies[run.policy];
      run.colour = `var(--p${run.policy % 12})`;
    }
    state.runs = chosen.runs;
    note.textContent = chosen.layout.said;
    const known = state.runs.map((run) => run.name);
    const wanted = [...(state.shown ?? cell.compared.map((index) => PAGE.policies[index]))];
    const found = wanted.filter((name) => known.includes(name));
    choose(new Set(found.length ? found : known.slice(0, 2)));
    move(state.shown === null ? Infinity : state.t);
    state.shown = found;
  }

  function choose(shown) {
    choice.replaceChildren(html("legend", {}, null, "Side by side"));
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
    const shown = state.runs.filter((run) => names.includes(run.name));
    for (const run of shown) if (!run.ages) agesOf(run, state.cell.ues);
    state.views = shown.map((run) => new PolicyView(run, state.cell, panels));
    state.shown = state.shown === null ? null : names;
  }

  function show() {
    const shown = state.views.map((view) => view.run);
    const values = state.runs.flatMap((run) => run.accuracy).filter((value) => value !== null);
    const [low, high] = values.length ? [Math.min(...values), Math.max(...values)] : [0, 1];
    for (const view of state.views) view.show(state.t, shown, [low, Math.max(high, low + 1)]);
    slider.value = state.t + 1;
    slider.setAttribute("aria-valuetext", `round ${state.t + 1} of ${state.cell.rounds}`);
    output.textContent = `round ${state.t + 1} of ${state.cell.rounds}`;
  }

  function move(t) {
    state.t = Math.min(Math.max(t, 0), state.cell.rounds - 1);
    show();
  }

  function go(t) {
    pause();
    move(t);
    tell();
  }

  function tell() {
    document.dispatchEvent(new CustomEvent("round", { detail: state.t + 1 }));
  }

  function start() {
    if (state.t + 1 >= state.cell.rounds) move(0);
    output.setAttribute("aria-live", "off");
    const period = 1000 / Number(speed.value);
    state.since = performance.now();
    state.timer = setInterval(() => {
      state.since = performance.now();
      move(state.t + 1);
      tell();
      if (state.t + 1 >= state.cell.rounds) pause();
    }, period);
    if (state.cell.layout.track.length > 1 && !quiet.matches) glide(period);
    label();
  }

  // Phones that move are on their way between two rounds, until the replay is paused.
  function glide(period) {
    const { timer } = state;
    const step = (now) => {
      if (state.timer !== timer) return;
      const share = Math.min(Math.max((now - state.since) / period, 0), 0.999);
      for (const view of state.views) view.place(state.t + share);
      requestAnimationFrame(step);
    };
    requestAnimationFrame(step);
  }

  function pause() {
    clearInterval(state.timer);
    if (state.timer) for (const view of state.views) view.place(state.t);
    state.timer = null;
    output.setAttribute("aria-live", "polite");
    label();
  }

  function toggle() { if (state.timer) pause(); else start(); }

  function label() {
    sign(play, state.timer ? "pause" : "play", state.timer ? " Pause" : " Play");
    play.setAttribute("aria-label", state.timer ? "Pause" : "Play");
    play.title = state.timer ? "Pause" : "Play";
  }

  const keys = { " ": toggle, ArrowLeft: () => go(state.t - 1), ArrowRight: () => go(state.t + 1),
                 Home: () => go(0), End: () => go(Infinity) };
  root.addEventListener("keydown", (event) => {
    const { target } = event;
    const taken = target.matches("select, input[type=checkbox]")
      || (event.key === " " && target.matches("button"));
    if (taken || !state.cell || !(event.key in keys)) return;
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    keys[event.key]();
  });
  root.tabIndex = 0;

  const all = document.getElementById("play-all");
  all?.addEventListener("click", () => {
    document.getElementById("watch").scrollIntoView({ behavior: quiet.matches ? "auto" : "smooth" });
    root.focus({ preventScroll: true });
    go(0);
    if (!state.timer) start();
  });
  if (all) all.hidden = false;

  choice.addEventListener("change", () => { arrange(); show(); });
  document.addEventListener("goto", ({ detail: round }) => { if (state.cell) go(round - 1); });
  const begin = () => load().finally(() => document.dispatchEvent(new Event("replay")));
  document.addEventListener("setting", () => { state.shown = null; begin(); });
  if (!chooser) begin();
})();
