"use strict";
// Asks /api/status again and again, and changes only the cells that differ. Text goes in as text.

const INTERVAL = 1000; // milliseconds between two questions
const MANY = 300; // routes, past which it asks half as often, so as not to slow what it shows
const TYPING = 350; // milliseconds of silence before a name is looked up
const byId = (id) => document.getElementById(id);
const asked = { token: "", timer: 0, latest: 0 };
const seen = { time: 0, started: 0, routes: new Map() };

// --- text -----------------------------------------------------------------------------------

const count = new Intl.NumberFormat("en");
const short = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

function amount(number) { return number < 100000 ? count.format(number) : short.format(number); }
function rate(number) { return number === null ? "…" : `${number < 10 ? Math.round(number * 10) / 10 : amount(Math.round(number))}/s`; }
function size(bytes) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let step = 0;
  while (bytes >= 1024 && step < units.length - 1) { bytes /= 1024; step += 1; }
  return `${step && bytes < 10 ? bytes.toFixed(1) : Math.round(bytes)} ${units[step]}`;
}
function age(seconds) {
  if (seconds === null) return "";
  if (seconds < 100) return `${seconds < 10 ? Math.round(seconds * 10) / 10 : Math.round(seconds)} s`;
  if (seconds < 6000) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172800) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86400)} d`;
}
function latency(seconds) { return seconds === null ? "" : seconds < 1 ? `${(seconds * 1000).toFixed(seconds < 0.01 ? 1 : 0)} ms` : age(seconds); }
function clock(seconds) { return new Date(seconds * 1000).toLocaleString(); }
function tally(counts) { return Object.entries(counts).map(([word, number]) => `${word} ${amount(number)}`).join(", "); }
function words(text) { return text.replaceAll("_", " "); }

// --- elements -------------------------------------------------------------------------------

function put(element, text) { if (element.textContent !== text) element.textContent = text; }
function make(tag, text = "", kind = "") {
  const element = document.createElement(tag);
  if (text) element.textContent = text;
  if (kind) element.className = kind;
  return element;
}

// A table whose rows are known by a key; `columns` are [title, class, text of an entry, mark].
class Table {
  constructor(id, columns) {
    this.element = byId(id);
    this.columns = columns;
    this.body = this.element.tBodies[0];
    this.rows = new Map();
    const head = this.element.tHead.rows[0];
    for (const [title, kind] of columns) {
      const cell = head.appendChild(make("th", title, kind === "number" ? kind : ""));
      cell.scope = "col";
    }
  }

  show(entries, key) {
    const gone = new Set(this.rows.keys());
    const fresh = document.createDocumentFragment();
    for (const entry of entries) {
      const name = key(entry);
      gone.delete(name);
      let row = this.rows.get(name);
      if (!row) {
        row = this.add(fresh);
        this.rows.set(name, row);
      }
      row.entry = entry;
      this.fill(row);
    }
    for (const name of gone) {
      this.rows.get(name).element.remove();
      this.rows.delete(name);
    }
    this.body.append(fresh);
  }

  add(parent) {
    const element = parent.appendChild(make("tr"));
    const cells = this.columns.map(([title, kind], index) => {
      const cell = element.appendChild(make(index ? "td" : "th", "", kind));
      if (index) cell.dataset.label = title;
      else cell.scope = "row";
      return cell;
    });
    return { element, cells, texts: [], marks: [], entry: null };
  }

  fill(row) {
    this.columns.forEach(([, kind, text, mark], index) => {
      const now = text(row.entry);
      const how = mark ? mark(row.entry) : "";
      if (row.texts[index] === now && row.marks[index] === how) return;
      row.texts[index] = now;
      row.marks[index] = how;
      const cell = row.cells[index];
      cell.classList.toggle("none", now === "");
      cell.replaceChildren(how && now ? make("span", now, `mark ${how}`) : now);
    });
  }
}

const endpoints = new Table("endpoints", [
  ["endpoint", "", (end) => end.name],
  ["side", "", (end) => `${end.side}, ${end.system}`],
  ["connection", "", (end) => end.connection, (end) => ({ connected: "good", connecting: "warn" })[end.connection] || "bad"],
  ["since", "number", (end) => age(Math.max(0, Math.round(seen.time - end.since)))],
  ["reconnects", "number", (end) => (end.reconnects ? amount(end.reconnects) : "")],
  ["reason", "long", (end) => end.reason],
  ["waiting", "long", waiting, (end) => (end.spool.share >= 0.8 ? "bad" : "")],
  ["driver counts", "long", (end) => words(tally(end.counts))],
]);
const routes = new Table("routes-table", [
  ["route", "", (route) => route.name],
  ["way", "long", (route) => `${route.sources.join(", ")} → ${route.targets.join(", ")}`],
  ["rate", "number", (route) => rate(route.rate)],
  ["received", "number", (route) => amount(route.received)],
  ["delivered", "number", (route) => amount(route.delivered)],
  ["lag", "number", (route) => (route.lag ? age(route.lag) : ""), (route) => (route.lag > 60 ? "bad" : "warn")],
  ["latency", "number", (route) => latency(route.latency)],
  ["heartbeat", "number", (route) => age(route.heartbeat_age), (route) => (stale(route) ? "bad" : "")],
  ["guarantee", "whole", (route) => words(route.guarantee)],
  ["dead letters", "long", (route) => tally(route.rules), () => "bad"],
  ["counted", "long", counted],
]);
const refusals = new Table("refusals", [
  ["time", "", (refusal) => clock(refusal.time)],
  ["route", "", (refusal) => refusal.route],
  ["rule", "", (refusal) => refusal.rule, () => "bad"],
  ["name", "long mono", (refusal) => refusal.name],
  ["reason", "long", (refusal) => refusal.reason],
]);

function waiting(end) {
  const { messages, bytes, share, age: oldest } = end.spool;
  const memory = end.held ? `${size(end.held)} in memory` : "";
  if (!messages) return memory;
  const used = `${(share * 100).toFixed(share < 0.1 ? 1 : 0)} % of the spool`;
  return `${memory && `${memory}, `}${amount(messages)} on disk (${size(bytes)}, ${used}, oldest ${age(oldest)})`;
}
function counted(route) {
  const lost = tally(route.lost_fields);
  return [
    route.loops && `loops cut ${amount(route.loops)}`,
    route.duplicates && `duplicates ${amount(route.duplicates)}`,
    route.ignored && `retained ignored ${amount(route.ignored)}`,
    route.unselected && `not selected ${amount(route.unselected)}`,
    lost && `lost fields: ${words(lost)}`,
  ].filter(Boolean).join(", ");
}

// --- the status -----------------------------------------------------------------------------

function stale(route) { return route.heartbeat_age !== null && route.heartbeat_age >= 3 * seen.heartbeat; }
function troubled(route) { return route.lag > 0 || stale(route) || Object.keys(route.rules).length > 0; }

// Rates over the time since the last status, and the mean latency of what was delivered in it.
function addRates(status) {
  const seconds = status.time - seen.time;
  const again = seen.started === status.started && seconds > 0;
  for (const route of status.routes) {
    const before = again ? seen.routes.get(route.name) : undefined;
    route.rate = before ? Math.max(0, route.received - before.received) / seconds : null;
    const delivered = before ? route.delivered - before.delivered : 0;
    route.latency = delivered > 0 ? (route.latency_sum - before.latency_sum) / delivered : null;
  }
  seen.time = status.time;
  seen.started = status.started;
  seen.heartbeat = status.heartbeat_seconds;
  seen.routes = new Map(status.routes.map((route) => [route.name, route]));
}

function showFigures(status) {
  const sum = (read) => status.routes.reduce((total, route) => total + read(route), 0);
  const spooled = status.endpoints.reduce((total, end) => total + end.spool.messages, 0);
  const known = status.routes.every((route) => route.rate !== null);
  const figures = {
    "messages in": rate(known ? sum((route) => route.rate) : null),
    "received": amount(sum((route) => route.received)),
    "delivered": amount(sum((route) => route.delivered)),
    "waiting on disk": amount(spooled),
    "dead letters kept": amount(status.dead_letters.count),
    "loops cut": amount(sum((route) => route.loops)),
    "duplicates": amount(sum((route) => route.duplicates)),
    "archive queue": size(status.archive.queued),
  };
  const list = byId("figures");
  for (const [title, text] of Object.entries(figures)) {
    let value = list.querySelector(`[data-figure="${title}"]`);
    if (!value) {
      const box = list.appendChild(make("div"));
      box.append(make("dt", title));
      value = box.appendChild(make("dd"));
      value.dataset.figure = title;
    }
    put(value, text);
  }
}

function showState(text, kind) {
  put(byId("state"), text);
  byId("state").className = `state ${kind}`;
}

function show(status) {
  if (status.time <= seen.time && status.started === seen.started) return; // the same as before
  addRates(status);
  put(byId("gateway"), status.gateway);
  put(byId("version"), status.version);
  put(byId("uptime"), age(Math.round(status.time - status.started)));
  put(byId("config"), status.config);
  put(byId("reloaded"), clock(status.reloaded));
  document.title = `${status.ready ? "" : "! "}${status.gateway}`;
  showState(status.ready ? "✓ ready" : "✗ not ready", status.ready ? "good" : "bad");
  showReasons(status.reasons);
  showFigures(status);
  endpoints.show(status.endpoints, (end) => `${end.side} ${end.name}`);
  routes.show(status.routes, (route) => route.name);
  filter();
  refusals.element.hidden = status.refusals.length === 0;
  byId("no-refusals").hidden = status.refusals.length > 0;
  showRefusals(status.refusals);
}

function showReasons(reasons) {
  const list = byId("reasons");
  list.hidden = reasons.length === 0;
  const text = reasons.join("\n");
  if (list.dataset.text === text) return;
  list.dataset.text = text;
  list.replaceChildren(...reasons.map((reason) => make("li", reason)));
}

// The newest stand first: rows are known by their place, so that only texts move.
function showRefusals(list) {
  refusals.show(list.map((refusal, place) => ({ ...refusal, place })), (refusal) => refusal.place);
}

function filter() {
  const wanted = byId("filter").value.toLowerCase().split(/\s+/).filter(Boolean);
  const onlyTrouble = byId("trouble").checked;
  let shown = 0;
  for (const row of routes.rows.values()) {
    const text = `${row.texts[0]} ${row.texts[1]}`.toLowerCase();
    const hidden = !wanted.every((word) => text.includes(word)) || (onlyTrouble && !troubled(row.entry));
    if (row.element.hidden !== hidden) row.element.hidden = hidden;
    shown += hidden ? 0 : 1;
  }
  put(byId("routes-shown"), `${shown} of ${routes.rows.size}`);
}

async function ask(path) {
  const headers = asked.token ? { Authorization: `Bearer ${asked.token}` } : {};
  const answer = await fetch(path, { headers, cache: "no-store", signal: AbortSignal.timeout(10000) });
  if (answer.status === 401) logIn("This token is not the right one.");
  return answer;
}

async function look() {
  clearTimeout(asked.timer);
  try {
    const answer = await ask("api/status");
    if (answer.status === 401) return;
    const found = await answer.json();
    if (answer.ok) show(found);
    else showState(`✗ ${found.error}`, "bad");
  } catch {
    showState("✗ no answer from the gateway", "bad");
  }
  if (!document.hidden) asked.timer = setTimeout(look, seen.routes.size > MANY ? 2 * INTERVAL : INTERVAL);
}

function logIn(said) {
  asked.token = "";
  byId("login").hidden = false;
  put(byId("login-said"), said);
  showState("token needed", "warn");
  byId("token").focus();
}

// --- the playground -------------------------------------------------------------------------

const REFUSED = "bad";

function line(title, ...parts) {
  const row = make("li");
  row.append(make("strong", title), " ", ...parts);
  return row;
}
function used(list) { return list.map((each) => `${each.actual} of ${each.maximum} ${each.unit}`).join(", "); }

function fate(made) {
  if (made.error || made.refused) {
    return [make("span", made.rule, `mark ${REFUSED}`), ` ${made.error || made.refused}`];
  }
  const texts = made.names || made.patterns || [made.name];
  const parts = texts.flatMap((text, index) => (index ? [", ", make("code", text)] : [make("code", text)]));
  if (made.exact === false) parts.push(" ", make("span", "wider", "mark warn"), ` kept when ${made.residual}`);
  if (made.omits) parts.push(` not reached: ${made.omits}`);
  if (made.used && made.used.length) parts.push(make("span", ` ${used(made.used)}`, "quiet"));
  return parts;
}

function routeLine(route) {
  const row = line(route.route, `takes ${route.whole === false ? "some of it" : "it"} from ${route.endpoint}, `, make("code", route.pattern));
  const captures = route.captures.map(([name, taken]) => `{${name}} = ${taken}`).join(", ");
  if (route.example) row.append(", such as ", make("code", route.example));
  if (captures) row.append(make("span", ` ${captures}`, "quiet"));
  const list = row.appendChild(make("ul"));
  for (const made of route.made) {
    const end = list.appendChild(line(`→ ${made.target} (${made.system})`));
    if (made.rule) end.append(make("span", made.rule, `mark ${REFUSED}`), ` ${made.reason}`);
    else end.append(make("code", made.name), make("span", ` ${used(made.used)}`, "quiet"));
    for (const back of made.back) end.append(make("div", `from there ${back.route} makes it ${back.name} at ${back.endpoint}`, "quiet"));
  }
  return row;
}

function showAnswer(found) {
  const box = byId("answer");
  if (found.error) return box.replaceChildren(make("p", found.error));
  const { check } = found;
  if (check.valid !== true) {
    const said = make("p");
    said.append(make("span", check.rule, `mark ${REFUSED}`), ` ${check.detail || check.error}`);
    return box.replaceChildren(said);
  }
  const said = make("p", `A legal ${found.kind} in ${found.system}. `);
  if (found.used && found.used.length) said.append(make("span", `It takes ${used(found.used)}.`, "quiet"));
  for (const warning of check.warnings || []) said.append(make("div", warning, "quiet"));
  const systems = make("ul");
  for (const made of found.elsewhere) systems.append(line(made.system, ...fate(made)));
  const taken = make("ul");
  for (const route of found.routes) taken.append(routeLine(route));
  const none = found.routes.length ? [] : [make("p", "No route takes it.", "quiet")];
  const more = found.more ? [make("p", `${found.more} more were not looked at or are not shown.`, "quiet")] : [];
  box.replaceChildren(said, make("h3", "Elsewhere"), systems, make("h3", "Routes"), taken, ...none, ...more);
  return undefined;
}

async function lookUp() {
  const text = byId("text").value;
  const turn = ++asked.latest;
  if (!text) return byId("answer").replaceChildren();
  const kind = document.querySelector("input[name=kind]:checked").value;
  const query = new URLSearchParams({ system: byId("system").value, kind, text });
  try {
    const answer = await ask(`api/explain?${query}`);
    const found = answer.headers.get("content-type") === "application/json" ? await answer.json() : { error: `refused: ${answer.status}` };
    if (turn === asked.latest) showAnswer(found);
  } catch {
    if (turn === asked.latest) showAnswer({ error: "no answer from the gateway" });
  }
  return undefined;
}

// --- start ----------------------------------------------------------------------------------

let typing = 0;
byId("filter").addEventListener("input", filter);
byId("trouble").addEventListener("change", filter);
byId("names").addEventListener("submit", (event) => { event.preventDefault(); lookUp(); });
byId("names").addEventListener("input", () => { clearTimeout(typing); typing = setTimeout(lookUp, TYPING); });
byId("login").addEventListener("submit", (event) => {
  event.preventDefault();
  asked.token = byId("token").value;
  byId("token").value = "";
  byId("login").hidden = true;
  showState("connecting", "warn");
  look();
});
document.addEventListener("visibilitychange", () => { if (!document.hidden && (asked.token || byId("login").hidden)) look(); });
if (document.documentElement.dataset.token === "asked") logIn("");
else look();
