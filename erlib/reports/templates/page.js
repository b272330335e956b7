// Tables: a heading sorts by its column, once more the other way, a third time as it was; and the
// table as it stands can be copied, with tabs between its cells.
const lines = cell => cell.innerText.replaceAll("−", "-").split("\n").map(line => line.trim());

function keys(rows, column) {
  const texts = rows.map(row => lines(row.cells[column])[0]);
  const numbers = texts.map(text => text === "–" || text === "" ? NaN : parseFloat(text.replaceAll(",", "")));
  const number = texts.every((text, i) => text === "–" || text === "" || /^[-+]?\.?\d[\d.,]*(e[-+]?\d+)?(\s.*|%)?$/i.test(text));
  return number ? numbers : texts;
}

function compare(a, b, sign) {
  if (typeof a === "string") return sign * a.localeCompare(b, "en", { numeric: true });
  return Number.isNaN(a) || Number.isNaN(b) ? Number.isNaN(a) - Number.isNaN(b) : sign * (a - b);
}

for (const table of document.querySelectorAll(".artefact > .scroll > table, .text > .scroll > table, table.claims")) {
  // Of two rows of headings those that stand right over a column: the tall ones come first.
  const [top, below] = table.tHead.rows;
  const headings = below ? [...[...top.cells].filter(cell => cell.rowSpan > 1), ...below.cells] : [...top.cells];
  const body = table.tBodies[0], first = [...body.rows];
  headings.forEach((heading, column) => {
    const button = document.createElement("button");
    button.append(...heading.childNodes);
    if (!button.textContent) button.ariaLabel = "row";
    heading.append(button);
    button.addEventListener("click", () => {
      const next = { none: "ascending", ascending: "descending", descending: "none" }[heading.ariaSort ?? "none"];
      headings.forEach(other => { other.ariaSort = null; });
      let order = first;
      if (next !== "none") {
        heading.ariaSort = next;
        const key = keys(first, column), sign = next === "ascending" ? 1 : -1;
        order = first.map((_, i) => i).sort((i, j) => compare(key[i], key[j], sign)).map(i => first[i]);
      }
      body.append(...order);
    });
  });
  if (!navigator.clipboard) continue;
  let tools = table.parentElement.previousElementSibling;
  if (!tools?.matches(".tools")) {
    tools = document.createElement("p");
    tools.className = "tools";
    table.parentElement.before(tools);
  }
  const copy = document.createElement("button");
  copy.textContent = "Copy";
  copy.addEventListener("click", async () => {
    const tall = below ? [...top.cells].filter(cell => cell.rowSpan > 1).length : 0;
    const text = [...table.rows].map(row => [
      ...Array(row === below ? tall : 0).fill(""),
      ...[...row.cells].flatMap(cell => [lines(cell).join(" ").trim(), ...Array(cell.colSpan - 1).fill("")]),
    ].join("\t"));
    await navigator.clipboard.writeText(text.join("\n"));
    copy.textContent = "Copied";
    setTimeout(() => { copy.textContent = "Copy"; }, 1500);
  });
  tools.prepend(copy);
}

// On a narrow screen the contents would push the page below the fold.
if (matchMedia("(max-width: 75rem)").matches) document.querySelector("nav details")?.removeAttribute("open");

// The index: claims of one verdict, of one paper.
const filters = document.querySelector("form.filters");
if (filters) {
  filters.hidden = false;
  const show = () => {
    const { verdict, paper } = Object.fromEntries(new FormData(filters));
    let shown = 0;
    for (const section of document.querySelectorAll("section[data-paper]")) {
      const rows = [...section.querySelectorAll("[data-verdict]")];
      for (const row of rows) row.hidden = verdict !== "" && row.dataset.verdict !== verdict;
      const left = rows.filter(row => !row.hidden).length;
      section.hidden = (paper !== "" && section.dataset.paper !== paper) || (verdict !== "" && left === 0);
      shown += section.hidden ? 0 : left;
    }
    filters.querySelector("output").textContent = verdict || paper ? `${shown} claims` : "";
  };
  filters.addEventListener("change", show);
  // A link to a claim that is filtered away shows all again.
  addEventListener("hashchange", () => {
    if (document.querySelector(":target")?.closest("[hidden]")) { filters.reset(); show(); document.querySelector(":target").scrollIntoView(); }
  });
}
