// Only comforts: without this script everything is there, and nothing can be filtered.
"use strict";
const bar = document.getElementById("filter");
if (bar) {
  const [words, trouble] = bar.querySelectorAll("input");
  const rows = [...document.querySelectorAll(".routes tbody tr")];
  const texts = rows.map((row) => [...row.querySelectorAll("code")].map((each) => each.textContent).join(" ").toLowerCase());
  const show = () => {
    const wanted = words.value.toLowerCase().split(/\s+/);
    let shown = 0;
    rows.forEach((row, place) => {
      const fits = wanted.every((each) => texts[place].includes(each));
      row.hidden = !fits || (trouble.checked && !row.querySelector(".bad, .warn, .note"));
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
