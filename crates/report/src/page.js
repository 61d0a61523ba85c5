// A click on a heading sorts by its column, and a second click reverses the order. Empty cells stay last.
for (const head of document.querySelectorAll("#runs thead th")) {
  // Not a button, because browsers do not print buttons in headings that are repeated on each page.
  const button = document.createElement("span");
  button.role = "button";
  button.tabIndex = 0;
  button.textContent = head.textContent;
  head.replaceChildren(button);
  button.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    button.click();
  });
  button.addEventListener("click", () => {
    const down = head.getAttribute("aria-sort") === "ascending";
    for (const other of head.parentNode.children) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const key = (row) => {
      const cell = row.cells[head.cellIndex];
      if (cell.dataset.v !== undefined) return Number(cell.dataset.v);
      return cell.textContent === "" ? null : cell.textContent;
    };
    const body = document.querySelector("#runs tbody");
    const rows = [...body.rows].map((row) => [key(row), row]);
    rows.sort(([a], [b]) => {
      if (a === null || b === null) return (a === null) - (b === null);
      const order = typeof a === "number" ? a - b : a.localeCompare(b);
      return down ? -order : order;
    });
    body.append(...rows.map(([, row]) => row));
  });
}
// Opens all sections for printing, and closes them again afterwards.
let folded = [];
addEventListener("beforeprint", () => {
  folded = [...document.querySelectorAll("details:not([open])")];
  for (const part of folded) part.open = true;
});
addEventListener("afterprint", () => {
  for (const part of folded) part.open = false;
});
