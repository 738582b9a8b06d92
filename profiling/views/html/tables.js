"use strict";
// Tables: a click on a heading sorts by that column, a second one turns the order round.
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => head.addEventListener("click", () => {
    const number = head.classList.contains("number");
    const before = head.getAttribute("aria-sort");
    const down = before ? before === "ascending" : number;
    heads.forEach((other) => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const value = (row) => {
      const cell = row.cells[column];
      return number ? (cell.dataset.v === undefined ? null : Number(cell.dataset.v)) : cell.textContent;
    };
    const rows = [...table.tBodies[0].rows].map((row) => [value(row), row]);
    rows.sort(([a], [b]) => {
      if (a === null || b === null) return (a === null) - (b === null); // what is not known is last
      const order = number ? a - b : a.localeCompare(b, undefined, {numeric: true});
      return down ? -order : order;
    });
    table.tBodies[0].append(...rows.map(([, row]) => row));
  }));
}
