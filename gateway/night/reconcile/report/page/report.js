// Filters the table of routes, and opens all details for printing.
"use strict";
const bar = document.getElementById("filter");
if (bar) {
  const [words, exceptionsOnly] = bar.querySelectorAll("input");
  const rows = [...document.querySelectorAll(".routes tbody tr")];
  const texts = rows.map((row) => [...row.querySelectorAll("code")].map((each) => each.textContent).join(" ").toLowerCase());
  const show = () => {
    const wanted = words.value.toLowerCase().split(/\s+/);
    let shown = 0;
    rows.forEach((row, index) => {
      const matches = wanted.every((each) => texts[index].includes(each));
      row.hidden = !matches || (exceptionsOnly.checked && !row.querySelector(".bad, .warn, .note"));
      shown += !row.hidden;
    });
    bar.querySelector("output").textContent = `${shown} of ${rows.length}`;
  };
  bar.addEventListener("input", show);
  bar.hidden = false;
  show();
}
addEventListener("beforeprint", () => {
  document.querySelectorAll("details").forEach((each) => { each.open = true; });
});
