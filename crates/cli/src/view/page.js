"use strict";
// The page of `packds view`. It requests samples from the server in parts while the user scrolls.

const PART = 120;
// `total` is the number of samples found. It is not known before the first part.
const state = {pack: null, query: {}, loaded: 0, total: Infinity, busy: false, asked: 0, shown: []};
const element = (id) => document.getElementById(id);

function make(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

async function ask(path, query = {}) {
  const reply = await fetch(`${path}?${new URLSearchParams(query)}`);
  if (!reply.ok) throw new Error(await reply.text());
  return reply.json();
}

const pictureUrl = (sample, field, side) => `picture?${new URLSearchParams({sample, field, side})}`;
const counted = (n, noun) => `${n.toLocaleString("en")} ${noun}${n === 1 ? "" : noun.endsWith("s") ? "es" : "s"}`;
const short = (number) => number === null ? "" : Number(number.toPrecision(6)).toString();

function bars(counts) {
  const most = Math.max(1, ...counts);
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", `0 0 ${counts.length} 48`);
  svg.setAttribute("preserveAspectRatio", "none");
  counts.forEach((count, i) => {
    const height = 48 * count / most;
    const bar = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    for (const [name, value] of Object.entries({x: i + 0.05, y: 48 - height, width: 0.9, height})) bar.setAttribute(name, value);
    svg.append(bar);
  });
  return svg;
}

function showPack(pack) {
  state.pack = pack;
  document.title = `${pack.name} - packds view`;
  element("name").textContent = pack.name;
  const classes = pack.classes.length ? `, ${counted(pack.classes.length, "class")}` : "";
  element("summary").textContent = counted(pack.n_samples, "sample") + classes;
  element("mask-tool").hidden = !pack.pictures.some((field) => field.is_mask);
  element("info").querySelector("pre").textContent = JSON.stringify(pack.info, null, 2);
  showClasses(pack.classes);
  showColumns(pack.columns);
  // A pack has statistics only of all its samples together.
  if (pack.n_samples === pack.info.n_samples) showPixels(pack.info.stats.fields || {});
}

function showClasses(classes) {
  element("classes").hidden = classes.length === 0;
  const most = Math.max(1, ...classes.map(([, count]) => count));
  classes.forEach(([name, count], id) => {
    const button = make("button", {type: "button"}, make("span", {textContent: name}), make("span", {textContent: count.toLocaleString("en")}));
    button.style.setProperty("--share", count / most);
    button.setAttribute("aria-pressed", "false");
    button.addEventListener("click", () => {
      const chosen = state.query.class === String(id);
      document.querySelectorAll("#classes button").forEach((other) => other.setAttribute("aria-pressed", "false"));
      button.setAttribute("aria-pressed", String(!chosen));
      search({class: chosen ? "" : String(id)});
    });
    element("classes").querySelector("ul").append(make("li", {}, button));
  });
}

function showColumns(columns) {
  element("columns").hidden = columns.every((column) => column.min === column.max);
  for (const column of columns) {
    // A column with only one value cannot narrow down the samples.
    if (column.min === column.max) continue;
    const bound = (key, value) => {
      const input = make("input", {type: "number", step: "any", placeholder: short(value)});
      input.setAttribute("aria-label", `${key === "min" ? "Smallest" : "Largest"} ${column.name}`);
      return input;
    };
    const min = bound("min", column.min);
    const max = bound("max", column.max);
    const filter = () => {
      document.querySelectorAll("#columns input").forEach((other) => { if (other !== min && other !== max) other.value = ""; });
      search({column: min.value || max.value ? column.name : "", min: min.value, max: max.value});
    };
    min.addEventListener("change", filter);
    max.addEventListener("change", filter);
    const box = make("div", {className: "column"}, make("h3", {textContent: column.name}), bars(column.bins), make("div", {className: "range"}, min, max));
    element("columns").querySelector("div").append(box);
  }
}

function showPixels(fields) {
  for (const [name, stats] of Object.entries(fields)) {
    element("pixels").hidden = false;
    // 256 values in 32 bars, all channels together.
    const counts = Array(32).fill(0);
    stats.histogram.forEach((channel) => channel.forEach((count, value) => { counts[value >> 3] += count; }));
    const mean = stats.mean.map((m) => (255 * m).toFixed(1)).join(", ");
    element("pixels").querySelector("div").append(make("div", {className: "column"}, make("h3", {textContent: name}), bars(counts),
      make("div", {className: "range"}, make("span", {textContent: "0"}), make("span", {textContent: `mean ${mean}`}), make("span", {textContent: "255"}))));
  }
}

function frame(sample, side) {
  const box = make("div", {className: "frame"});
  const images = state.pack.pictures.filter((field) => !field.is_mask).slice(0, 1);
  const shown = images.concat(state.pack.pictures.filter((field) => field.is_mask));
  for (const field of shown.length ? shown : []) {
    const isOver = field.is_mask && images.length > 0;
    const image = make("img", {loading: "lazy", alt: "", className: isOver ? "mask" : "", src: pictureUrl(sample, field.name, side)});
    if (!isOver) image.addEventListener("error", async () => {
      image.remove();
      box.classList.add("bad");
      box.dataset.why = await (await fetch(image.src)).text();
    });
    box.append(image);
  }
  return box;
}

function cell(listed) {
  const name = listed.label || (listed.path || "").split("/").pop();
  const caption = listed.is_substituted ? `substituted: ${name}` : name;
  const button = make("button", {type: "button", title: listed.path || ""}, frame(listed.sample, 320),
    make("span", {className: listed.is_substituted ? "caption substituted" : "caption"}, make("bdi", {textContent: caption}), make("small", {textContent: `#${listed.sample}`})));
  button.addEventListener("click", () => showDetail(listed.sample));
  return make("li", {}, button);
}

async function search(changed = {}) {
  Object.assign(state.query, changed);
  state.loaded = 0;
  state.total = Infinity;
  state.shown = [];
  state.busy = false;
  state.asked += 1;
  element("grid").replaceChildren();
  await loadMore();
}

async function loadMore() {
  if (state.busy || state.loaded >= state.total) return;
  state.busy = true;
  const asked = state.asked;
  element("more").textContent = "Loading";
  try {
    const found = await ask("samples", {...state.query, offset: state.loaded, limit: PART});
    // A newer search has begun.
    if (asked !== state.asked) return;
    state.total = found.total;
    state.loaded += found.samples.length;
    state.shown.push(...found.samples.map((listed) => listed.sample));
    element("grid").append(...found.samples.map(cell));
    const all = found.total === state.pack.n_samples;
    element("found").replaceChildren(all ? "All samples, in file order" : `${counted(found.total, "sample")} found `);
    if (!all) {
      const reset = make("button", {type: "button", textContent: "Show all"});
      reset.addEventListener("click", () => {
        element("text").value = "";
        document.querySelectorAll("#columns input").forEach((input) => { input.value = ""; });
        document.querySelectorAll("#classes button").forEach((button) => button.setAttribute("aria-pressed", "false"));
        search({class: "", text: "", column: "", min: "", max: ""});
      });
      element("found").append(reset);
    }
    element("more").textContent = found.total === 0 ? "No samples match." : state.loaded < state.total ? "Scroll down for more" : "";
    state.busy = false;
    if (isEndVisible()) loadMore();
  } catch (error) {
    if (asked !== state.asked) return;
    state.busy = false;
    element("more").textContent = error instanceof TypeError ? "packds view has stopped. Start it again, and open the new address." : error.message;
  }
}

const isEndVisible = () => element("more").getBoundingClientRect().top < innerHeight + 600;

// The classes in a mask, with their colours.
function legend(entries) {
  return make("ul", {className: "legend"}, ...entries.map(({color, name}) => {
    const swatch = make("span", {className: "swatch"});
    swatch.style.background = color;
    return make("li", {}, swatch, name);
  }));
}

async function showDetail(sample) {
  const detail = await ask("sample", {sample});
  element("detail").dataset.sample = sample;
  element("detail-title").textContent = `Sample ${sample}${detail.label ? `: ${detail.label}` : ""}${detail.is_substituted ? " (substituted)" : ""}`;
  element("detail-pictures").replaceChildren(...state.pack.pictures.map((field) =>
    make("figure", {}, make("img", {alt: `${field.name} of sample ${sample}`, src: pictureUrl(sample, field.name, 1024)}), make("figcaption", {}, field.name, legend(detail.legends[field.name])))));
  const rows = detail.fields.map(({name, value}) => [name, value]);
  if (detail.path !== null) rows.unshift(["path", detail.path]);
  element("detail-fields").querySelector("tbody").replaceChildren(...rows.map(([name, value]) =>
    make("tr", {}, make("th", {scope: "row", textContent: name}), make("td", {textContent: value}))));
  if (!element("detail").open) element("detail").showModal();
}

element("detail").addEventListener("keydown", (event) => {
  const step = {ArrowLeft: -1, ArrowRight: 1}[event.key];
  const next = state.shown[state.shown.indexOf(Number(element("detail").dataset.sample)) + step];
  if (step && next !== undefined) showDetail(next);
});
element("tools").addEventListener("submit", (event) => event.preventDefault());
let waiting = 0;
element("text").addEventListener("input", () => {
  clearTimeout(waiting);
  waiting = setTimeout(() => search({text: element("text").value}), 250);
});
element("size").addEventListener("input", () => document.documentElement.style.setProperty("--side", `${element("size").value}px`));
element("opacity").addEventListener("input", () => document.documentElement.style.setProperty("--mask", element("opacity").value / 100));
addEventListener("scroll", () => { if (isEndVisible()) loadMore(); }, {passive: true});

// On a narrow screen the samples come first.
element("side").open = innerWidth > 760;
ask("pack").then((pack) => { showPack(pack); return search(); }).catch((error) => { element("more").textContent = error.message; });
