// A click on a heading sorts by its column, a second one the other way; what is empty stays last.
for (const head of document.querySelectorAll("#runs thead th")) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = head.textContent;
  head.replaceChildren(button);
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
