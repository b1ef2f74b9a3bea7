// Connects the controls, and starts.

const TYPING_PAUSE = 350; // milliseconds without input before a lookup
let typing = 0;
byId("filter").addEventListener("input", filter);
byId("problems").addEventListener("change", filter);
for (const type of ["click", "keydown"]) byId("map").addEventListener(type, choose);
byId("details-close").addEventListener("click", closeDetails);
document.addEventListener("keydown", (event) => { if (event.key === "Escape" && details.chosen) closeDetails(); });
document.addEventListener("click", (event) => {
  const { route } = event.target.dataset;
  if (route === undefined) return;
  openDetails({ route });
  byId("details").scrollIntoView({ block: "nearest" });
});
new ResizeObserver(() => { if (previous.status) showMap(previous.status); }).observe(byId("map-scroll"));
byId("names").addEventListener("submit", (event) => { event.preventDefault(); lookUp(); });
byId("names").addEventListener("change", (event) => { event.target.dataset.chosen = "yes"; });
byId("names").addEventListener("input", () => { clearTimeout(typing); typing = setTimeout(lookUp, TYPING_PAUSE); });
byId("login").addEventListener("submit", (event) => {
  event.preventDefault();
  session.token = byId("token").value;
  byId("token").value = "";
  byId("login").hidden = true;
  showState("connecting", "warn");
  poll();
});
document.addEventListener("visibilitychange", () => { if (!document.hidden && (session.token || byId("login").hidden)) poll(); });
if (document.documentElement.dataset.token === "needed") logIn("");
else poll();
