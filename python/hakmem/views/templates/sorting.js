/* Tables that sort by the columns whose head has data-key; cells have data-value.  The first click on a column
   of figures puts the largest first. */
for (const head of document.querySelectorAll("th[data-key]")) {
  head.addEventListener("click", () => {
    const body = head.closest("table").tBodies[0], key = head.cellIndex, isNumber = head.classList.contains("n");
    const sorted = head.getAttribute("aria-sort");
    const down = sorted !== "descending" && isNumber || sorted === "ascending";
    const value = row => row.cells[key].dataset.value;
    const order = isNumber ? (a, b) => value(a) - value(b) : (a, b) => value(a).localeCompare(value(b));
    const rows = [...body.rows].sort(order);
    body.replaceChildren(...(down ? rows.reverse() : rows));
    head.closest("table").querySelectorAll("th[aria-sort]").forEach(other => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
  });
}
