// The page of results: shows sections of HTML, tells the kernel which word was clicked, and saves
// what is shown. All HTML comes from the kernel, where every character of a text is escaped.

const SECTIONS = ["survey", "text", "predictions", "heatmaps", "agreement", "curves"];
const LINES = ".words, .heatmaps .text"; // what words stand in
const LONGEST = 16000; // pixels: browsers refuse taller canvases

function element(tag, className, text) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text) made.textContent = text;
  return made;
}

function save(blob, name) {
  const link = element("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

// What is shown, as an element that needs nothing else: no scroll bars, the colours of this theme.
function copyOf(root) {
  const copy = root.cloneNode(true);
  const theme = getComputedStyle(root);
  copy.style.color = theme.color;
  copy.style.backgroundColor = theme.backgroundColor;
  for (const name of ["--ink", "--line", "--soft"]) {
    copy.style.setProperty(name, theme.getPropertyValue(name));
  }
  for (const live of copy.querySelectorAll(".toolbar, .status, .message")) live.remove();
  for (const word of copy.querySelectorAll("[data-place]")) {
    for (const name of ["role", "tabindex", "aria-pressed"]) word.removeAttribute(name);
  }
  return copy;
}

function asHtml(root) {
  const page = document.implementation.createHTMLDocument("erlib explorer");
  page.head.innerHTML += '<meta charset="utf-8">' +
    '<meta name="viewport" content="width=device-width, initial-scale=1">';
  page.body.append(copyOf(root));
  page.body.style.backgroundColor = getComputedStyle(root).backgroundColor;
  return new Blob(["<!doctype html>\n", page.documentElement.outerHTML], { type: "text/html" });
}

// The page drawn by the browser itself, inside an SVG picture.
async function asPng(root) {
  const copy = copyOf(root);
  const width = Math.max(root.scrollWidth, ...[...root.querySelectorAll(".scroll")].map(
    (box) => box.scrollWidth + 40));
  copy.style.width = `${width}px`;
  copy.classList.add("still");
  Object.assign(copy.style, { position: "absolute", left: "-100000px" });
  document.body.append(copy); // measured where it cannot be seen
  const height = Math.ceil(copy.getBoundingClientRect().height);
  copy.remove();
  Object.assign(copy.style, { position: "", left: "" });
  const markup = new XMLSerializer().serializeToString(copy)
    .replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, "\ufffd"); // not in XML
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}">` +
    `<foreignObject width="100%" height="100%">${markup}</foreignObject></svg>`;
  const picture = new Image();
  picture.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
  await picture.decode();
  const scale = Math.min(2, LONGEST / height, LONGEST / width);
  const canvas = element("canvas");
  canvas.width = Math.floor(width * scale);
  canvas.height = Math.floor(height * scale);
  const pen = canvas.getContext("2d");
  pen.scale(scale, scale);
  pen.drawImage(picture, 0, 0);
  return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
}

// Arrows, Home and End take the focus to another word of the same line, and the line's tab stop too.
function moveFocus(word, key) {
  const line = word.closest(LINES);
  const words = [...line.querySelectorAll("[data-place]")];
  const rightwards = getComputedStyle(line).direction === "rtl" ? -1 : 1;
  const at = words.indexOf(word);
  const to = {
    ArrowRight: at + rightwards, ArrowLeft: at - rightwards,
    ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: words.length - 1,
  }[key];
  if (!words[to]) return false;
  word.tabIndex = -1;
  words[to].tabIndex = 0;
  words[to].focus();
  return true;
}

function render({ model, el }) {
  const root = element("div", "erlib-explorer");
  const style = element("style");
  style.textContent = model.get("css");
  const message = element("p", "message");
  message.setAttribute("role", "alert");
  const status = element("div", "status");
  status.setAttribute("role", "status");
  const bar = element("progress");
  bar.setAttribute("aria-label", "progress of the explanation");
  const doing = element("span");
  const clock = element("span");
  clock.setAttribute("aria-hidden", "true"); // nobody wants to hear every second
  status.append(bar, doing, clock);
  const toolbar = element("div", "toolbar");
  const sections = Object.fromEntries(SECTIONS.map((name) => [name, element("section", name)]));
  const results = element("div", "results");
  results.append(...Object.values(sections));
  root.append(style, message, status, toolbar, results);
  el.append(root);

  function button(label, action) {
    const made = element("button", "", label);
    made.addEventListener("click", async () => {
      try {
        await action();
      } catch (error) {
        message.textContent = `${label}: this browser refused (${error.message || error})`;
      }
    });
    toolbar.append(made);
    return made;
  }
  const restore = button("Put all words back", () => tell({ restore: true }));
  button("Save as HTML", () => save(asHtml(root), "explorer.html"));
  button("Save as PNG", async () => save(await asPng(root), "explorer.png"));

  const kinds = { "scores.csv": "CSV", "scores.tex": "LaTeX", "scores.json": "JSON" };
  const exports = Object.entries(kinds).map(([name, kind]) =>
    button(`Scores as ${kind}`, () => save(new Blob([model.get("scores")[name]]), name)));
  function offerScores() {
    for (const one of exports) one.disabled = !Object.keys(model.get("scores")).length;
  }

  // The text that is shown may be another by the time the kernel hears of it.
  function tell(what) {
    model.send({ ...what, generation: model.get("generation") });
  }

  function strike() {
    const removed = new Set(model.get("removed"));
    for (const word of root.querySelectorAll("[data-place]")) {
      const gone = removed.has(word.dataset.place);
      word.classList.toggle("removed", gone);
      word.setAttribute("aria-pressed", String(gone));
    }
    restore.disabled = removed.size === 0;
  }

  // Each line of words is one stop of the Tab key; arrows go from word to word within it.
  function makeReachable(section) {
    for (const line of section.querySelectorAll(LINES)) {
      line.setAttribute("data-lm-suppress-shortcuts", "true"); // or JupyterLab takes the keys
      line.querySelectorAll("[data-place]").forEach((word, i) => {
        word.setAttribute("role", "button");
        word.tabIndex = i ? -1 : 0;
      });
    }
  }

  function show(name) {
    sections[name].innerHTML = model.get(name);
    toolbar.hidden = !model.get("text") && !model.get("survey");
    makeReachable(sections[name]);
    strike();
  }

  let since = 0, ticking = null;
  function tick() {
    const seconds = Math.round((Date.now() - since) / 1000);
    clock.textContent = seconds ? `${seconds} s` : "";
  }
  function progress() {
    const { done, total, doing: what } = model.get("progress");
    const waiting = what !== undefined;
    status.hidden = !waiting;
    results.setAttribute("aria-busy", String(waiting)); // not the status, which would be silenced
    const said = waiting ? `${Math.min(Math.floor(done) + 1, total)} of ${total}: ${what}` : "";
    if (waiting) Object.assign(bar, { max: total, value: done });
    if (said === doing.textContent) return; // another part of the same step
    doing.textContent = said;
    clearInterval(ticking);
    if (!waiting) return;
    since = Date.now();
    ticking = setInterval(tick, 500);
    tick();
  }
  function say() {
    message.textContent = model.get("message");
  }

  // Texts without a value come last.
  function order(by) {
    const [, sign, name] = /^(-?)(.*)$/.exec(by);
    const key = (row) => (sign ? -1 : 1) * parseFloat(row.dataset[name]);
    const body = root.querySelector(".texts tbody");
    body.append(...[...body.rows].sort((a, b) =>
      isNaN(key(a)) - isNaN(key(b)) || key(b) - key(a) || 0));
  }

  root.addEventListener("click", (event) => {
    const { row, order: by } = event.target.dataset;
    if (row) tell({ row: Number(row) });
    if (by) order(by);
    const word = event.target.closest("[data-place]");
    if (word) tell({ place: word.dataset.place });
  });
  root.addEventListener("keydown", (event) => {
    const word = event.target.closest("[data-place]");
    if (!word) return;
    if (event.key === "Enter" || event.key === " ") {
      tell({ place: word.dataset.place });
    } else if (!moveFocus(word, event.key)) {
      return;
    }
    event.preventDefault(); // Space would scroll
  });
  for (const name of SECTIONS) model.on(`change:${name}`, () => show(name));
  model.on("change:scores", offerScores);
  model.on("change:removed", strike);
  model.on("change:progress", progress);
  model.on("change:message", say);
  SECTIONS.forEach(show);
  offerScores();
  progress();
  say();
  return () => clearInterval(ticking);
}

export default { render };
