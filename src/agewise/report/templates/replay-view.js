// One policy of the replay: its cell, its subchannels and its accuracy so far.
"use strict";

// Ages fall into these classes; a class begins at its number and ends before the next.
const AGE_CLASSES = [0, 1, 3, 6, 11, 21, 41];
const ageClass = (age) => AGE_CLASSES.findLastIndex((first) => age >= first);

function svg(name, attributes, parent) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (parent) parent.append(element);
  return element;
}

function html(name, attributes, parent, text) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== undefined) element.textContent = text;
  if (parent) parent.append(element);
  return element;
}

// How far from the middle of the picture UEs are drawn at most.
const REACH = 104;

// Where the UEs of a seed are drawn: track[round][2 ue], [2 ue + 1], of one round if they stay;
// what a title says of a place, and what the page says of all.
function layoutOf(seed, ues) {
  if (seed.positions) return onMap(seed);
  return seed.rank ? byChannel(seed) : inRows(ues);
}

function onMap({ positions, steps, radius }) {
  const scale = REACH / radius;
  let now = positions.flat();
  const at = [now, ...(steps ?? []).map((step) => (now = now.map((value, i) => value + step[i])))];
  const metres = (ue, t) => Math.hypot(...at[Math.min(t, at.length - 1)].slice(2 * ue, 2 * ue + 2)) / 10;
  return {
    track: at.map((values) => Float32Array.from(values, (value, i) => (i % 2 ? -scale : scale) * value)),
    where: (ue, t) => `, ${metres(ue, t).toFixed(0)} m away`,
    radius: radius / 10, centred: true,
    said: `The cell is drawn to scale.${steps ? " The phones move: each is where it was in the round." : ""}`,
  };
}

// A spiral, in which the place of a UE says how good its channel is.
function byChannel({ rank, ranked }) {
  const at = rank.flatMap((place) => {
    const far = 14 + (REACH - 18) * Math.sqrt((place + 0.5) / rank.length), angle = 2.39996 * place;
    return [far * Math.cos(angle), far * Math.sin(angle)];
  });
  return {
    track: [Float32Array.from(at)], where: (ue) => `, channel number ${rank[ue] + 1} of ${rank.length}`, centred: true,
    said: "The runs do not say where the phones are. The better the mean gain of a phone in round " +
      `${ranked}, the nearer to the access point it is drawn.`,
  };
}

function inRows(ues) {
  const columns = Math.ceil(Math.sqrt(ues));
  const middle = (i) => 2 * REACH * (i + 0.5) / columns - REACH;
  const at = Array.from({ length: ues }, (_, ue) => [middle(ue % columns), middle(Math.floor(ue / columns))]);
  return {
    track: [Float32Array.from(at.flat())], where: () => "", centred: false,
    said: "The runs do not say where the phones are, so they stand in rows by their number.",
  };
}

class PolicyView {
  constructor(run, cell, parent) {
    this.run = run;
    this.cell = cell;
    this.panel = html("article", { class: "panel", "data-policy": run.name }, parent);
    this.panel.style.setProperty("--policy", run.colour);
    html("h3", {}, this.panel, run.name);
    const stage = html("div", { class: "stage" }, this.panel);
    this.#drawCell(stage);
    this.#drawSide(stage);
    this.#drawStrip();
    this.panel.addEventListener("pointerover", (event) => this.#point(event.target));
    this.panel.addEventListener("pointerleave", () => this.#point(null));
  }

  #drawCell(stage) {
    const { layout, ues } = this.cell;
    this.map = svg("svg", { class: "cell", viewBox: "-108 -108 216 216", role: "img" }, stage);
    if (layout.radius) {
      svg("circle", { class: "disc", r: REACH }, this.map);
      for (const part of [1, 2, 3]) svg("circle", { class: "ring", r: REACH / 4 * part }, this.map);
    }
    this.links = svg("g", {}, this.map);
    this.phones = svg("g", {}, this.map);
    const size = Math.max(1.2, Math.min(4.4, 36 / Math.sqrt(ues)));
    this.dots = Array.from({ length: ues }, (_, ue) => {
      const link = layout.centred ? svg("line", { "data-owner": ue }, this.links) : null;
      const dot = svg("circle", { r: size, "data-ue": ue, "data-owner": ue }, this.phones);
      return { dot, link, size, title: svg("title", {}, dot) };
    });
    if (layout.centred) {
      const ap = svg("g", { class: "ap" }, this.map);
      svg("path", { d: "M0 -8 L7 6 L-7 6 Z" }, ap);
      svg("title", {}, ap).textContent = "access point";
    }
    if (layout.radius) svg("text", { x: 0, y: 101, class: "scale" }, this.map).textContent = `${layout.radius} m`;
    this.placed = null;
  }

  // The UEs where they are in a round, or on the way to the next one, as the fraction says.
  place(at) {
    const { track } = this.cell.layout;
    const from = track[Math.min(Math.floor(at), track.length - 1)];
    if (this.placed === from && track.length === 1) return;
    const to = track[Math.min(Math.floor(at) + 1, track.length - 1)], share = at - Math.floor(at);
    this.placed = from;
    this.dots.forEach(({ dot, link }, ue) => {
      const x = from[2 * ue] + share * (to[2 * ue] - from[2 * ue]);
      const y = from[2 * ue + 1] + share * (to[2 * ue + 1] - from[2 * ue + 1]);
      dot.setAttribute("cx", x);
      dot.setAttribute("cy", y);
      link?.setAttribute("x2", x);
      link?.setAttribute("y2", y);
    });
  }

  #drawSide(stage) {
    const side = html("div", { class: "side" }, stage);
    const list = html("dl", {}, side);
    this.facts = {};
    for (const name of ["accuracy", "uploads now", "heard so far", "oldest update"]) {
      const pair = html("div", {}, list);
      html("dt", {}, pair, name);
      this.facts[name] = html("dd", {}, pair);
    }
    const figure = html("figure", { class: "sofar" }, side);
    html("figcaption", {}, figure, "accuracy so far");
    this.top = html("small", {}, figure);
    this.plot = svg("svg", { viewBox: "0 0 100 60", preserveAspectRatio: "none",
                             "aria-hidden": "true" }, figure);
    this.bottom = html("small", {}, figure);
  }

  #drawStrip() {
    const count = this.cell.subchannels;
    const label = "Subchannels with their owners; the height of a bar is the share of the owner's power";
    this.strip = svg("svg", { class: count > 40 ? "strip many" : "strip", viewBox: `0 0 ${20 * count} 46`, role: "img",
                              "aria-label": label }, this.panel);
    this.slots = Array.from({ length: count }, (_, n) => {
      const slot = svg("g", { "data-subchannel": n, transform: `translate(${20 * n} 0)` },
                       this.strip);
      svg("rect", { class: "slot", x: 1, y: 1, width: 18, height: 32 }, slot);
      const bar = svg("rect", { class: "bar", x: 1, width: 18 }, slot);
      const text = svg("text", { x: 10, y: 43 }, slot);
      return { slot, bar, text, title: svg("title", {}, slot) };
    });
  }

  show(t, rivals, range) {
    const { run, cell } = this;
    const ages = run.ages[t], owners = run.owner[t], powers = run.power[t];
    const on = new Set(owners.filter((ue) => ue >= 0));
    this.panel.dataset.round = t + 1;
    this.place(t);
    this.dots.forEach((each, ue) => this.#showDot(each, `phone ${ue}${cell.layout.where(ue, t)}`, ages[ue], on.has(ue)));
    this.slots.forEach((each, n) => this.#showSlot(each, n, owners[n], powers[n], ages));
    const oldest = ages.reduce((most, age) => Math.max(most, age), 0);
    const accuracy = lastKnown(run.accuracy, t);
    const facts = [accuracy === null ? "–" : `${accuracy.toFixed(1)} %`, `${on.size} ${on.size === 1 ? "phone" : "phones"}`,
      `${run.reached[t]} of ${cell.ues}`, `${oldest} ${oldest === 1 ? "round" : "rounds"}`];
    Object.values(this.facts).forEach((fact, i) => { fact.textContent = facts[i]; });
    this.map.setAttribute("aria-label", `${run.name}, round ${t + 1}: ${facts[1]} upload, ` +
      `${facts[2]} heard so far, the oldest update is ${facts[3]} old`);
    this.#showAccuracy(t, rivals, range);
  }

  #showDot({ dot, link, size, title }, name, age, on) {
    dot.setAttribute("class", `ue age${ageClass(age)}${on ? " on" : ""}`);
    dot.setAttribute("r", on ? Math.max(size * 1.45, 2.6) : size);
    if (on) this.phones.append(dot); // over those that wait
    dot.dataset.age = age;
    dot.dataset.on = Number(on);
    if (link) link.setAttribute("class", on ? "link on" : "link");
    title.textContent = `${name}, age ${age}`;
  }

  #showSlot({ slot, bar, text, title }, n, owner, power, ages) {
    const height = owner < 0 ? 0 : Math.max(1.5, 32 * power / 100);
    slot.dataset.owner = owner;
    slot.dataset.power = power;
    bar.setAttribute("class", owner < 0 ? "bar" : `bar age${ageClass(ages[owner])}`);
    bar.setAttribute("y", 33 - height);
    bar.setAttribute("height", height);
    text.textContent = owner < 0 ? "" : owner;
    title.textContent = owner < 0 ? `subchannel ${n}: free`
      : `subchannel ${n}: phone ${owner} with ${power} % of its power`;
  }

  #showAccuracy(t, rivals, [low, high]) {
    this.top.textContent = `${high.toFixed(0)} %`;
    this.bottom.textContent = `${low.toFixed(0)} %, to round ${this.cell.rounds}`;
    const last = Math.max(1, this.cell.rounds - 1);
    const points = (run) => run.accuracy.slice(0, t + 1).flatMap((value, i) => value === null ? []
      : [`${(100 * i / last).toFixed(1)},${(58 - 56 * (value - low) / (high - low)).toFixed(1)}`]);
    this.plot.replaceChildren(...[...rivals.filter((run) => run !== this.run), this.run].map((run) =>
      svg("polyline", { points: points(run).join(" "), stroke: run.colour,
                        class: run === this.run ? "own" : "rival" })));
  }

  #point(target) {
    const owner = target?.closest("[data-owner]")?.dataset.owner;
    for (const each of this.panel.querySelectorAll(".hot")) each.classList.remove("hot");
    if (owner === undefined || owner === "-1") return;
    const same = this.panel.querySelectorAll(`[data-owner="${owner}"]`);
    for (const each of same) each.classList.add("hot");
  }
}

function lastKnown(values, t) {
  for (let i = t; i >= 0; i -= 1) if (values[i] !== null) return values[i];
  return null;
}
