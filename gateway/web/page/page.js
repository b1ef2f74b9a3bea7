"use strict";
// Polls /api/status and updates the cells that changed. Text from the gateway is never HTML.

const POLL_INTERVAL = 1000; // milliseconds
const MANY_ROUTES = 300; // above this number, the interval is doubled
const TYPING_PAUSE = 350; // milliseconds without input before a lookup
const byId = (id) => document.getElementById(id);
const session = { token: "", timer: 0, lookups: 0 };
const previous = { time: 0, started: 0, routes: new Map() };

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

// A table with a row per key. A column is [title, class, function to text, function to mark class].
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
    const removed = new Set(this.rows.keys());
    const added = document.createDocumentFragment();
    for (const entry of entries) {
      const name = key(entry);
      removed.delete(name);
      let row = this.rows.get(name);
      if (!row) {
        row = this.add(added);
        this.rows.set(name, row);
      }
      row.entry = entry;
      this.fill(row);
    }
    for (const name of removed) {
      this.rows.get(name).element.remove();
      this.rows.delete(name);
    }
    this.body.append(added);
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
      const value = text(row.entry);
      const markClass = mark ? mark(row.entry) : "";
      if (row.texts[index] === value && row.marks[index] === markClass) return;
      row.texts[index] = value;
      row.marks[index] = markClass;
      const cell = row.cells[index];
      cell.classList.toggle("none", value === "");
      cell.replaceChildren(markClass && value ? make("span", value, `mark ${markClass}`) : value);
    });
  }
}

const endpoints = new Table("endpoints", [
  ["endpoint", "", (end) => end.name],
  ["side", "", (end) => `${end.side}, ${end.system}`],
  ["connection", "", (end) => end.connection, (end) => ({ connected: "good", connecting: "warn" })[end.connection] || "bad"],
  ["since", "number", (end) => age(Math.max(0, Math.round(previous.time - end.since)))],
  ["reconnects", "number", (end) => (end.reconnects ? amount(end.reconnects) : "")],
  ["reason", "long", (end) => end.reason],
  ["pending", "long", pending, (end) => (end.spool.share >= 0.8 ? "bad" : "")],
  ["driver counts", "long", (end) => words(tally(end.counts))],
]);
const routes = new Table("routes-table", [
  ["route", "", (route) => route.name],
  ["source → targets", "long", (route) => `${route.sources.join(", ")} → ${route.targets.join(", ")}`],
  ["rate", "number", (route) => rate(route.rate)],
  ["received", "number", (route) => amount(route.received)],
  ["delivered", "number", (route) => amount(route.delivered)],
  ["lag", "number", (route) => (route.lag ? age(route.lag) : ""), (route) => (route.lag > 60 ? "bad" : "warn")],
  ["latency", "number", (route) => latency(route.latency)],
  ["heartbeat", "number", (route) => age(route.heartbeat_age), (route) => (stale(route) ? "bad" : "")],
  ["guarantee", "whole", (route) => words(route.guarantee)],
  ["dead letters", "long", (route) => tally(route.rules), () => "bad"],
  ["dropped or changed", "long", dropped],
]);
const refusals = new Table("refusals", [
  ["time", "", (refusal) => clock(refusal.time)],
  ["route", "", (refusal) => refusal.route],
  ["rule", "", (refusal) => refusal.rule, () => "bad"],
  ["name", "long mono", (refusal) => refusal.name],
  ["reason", "long", (refusal) => refusal.reason],
]);

function pending(end) {
  const { messages, bytes, share, age: oldest } = end.spool;
  const memory = end.held ? `${size(end.held)} in memory` : "";
  if (!messages) return memory;
  const used = `${(share * 100).toFixed(share < 0.1 ? 1 : 0)} % of the spool`;
  return `${memory && `${memory}, `}${amount(messages)} on disk (${size(bytes)}, ${used}, oldest ${age(oldest)})`;
}
function dropped(route) {
  const lost = tally(route.lost_fields);
  return [
    route.loops && `loops dropped ${amount(route.loops)}`,
    route.duplicates && `duplicates ${amount(route.duplicates)}`,
    route.ignored && `retained messages ignored ${amount(route.ignored)}`,
    route.unselected && `not selected ${amount(route.unselected)}`,
    lost && `lost fields: ${words(lost)}`,
  ].filter(Boolean).join(", ");
}

// --- the status -----------------------------------------------------------------------------

function stale(route) { return route.heartbeat_age !== null && route.heartbeat_age >= 3 * previous.heartbeat; }
function hasProblem(route) { return route.lag > 0 || stale(route) || Object.keys(route.rules).length > 0; }

// Adds the rate since the previous status, and the mean latency of the deliveries since then.
function addRates(status) {
  const seconds = status.time - previous.time;
  const comparable = previous.started === status.started && seconds > 0;
  for (const route of status.routes) {
    const before = comparable ? previous.routes.get(route.name) : undefined;
    route.rate = before ? Math.max(0, route.received - before.received) / seconds : null;
    const delivered = before ? route.delivered - before.delivered : 0;
    route.latency = delivered > 0 ? (route.latency_sum - before.latency_sum) / delivered : null;
  }
  previous.time = status.time;
  previous.started = status.started;
  previous.heartbeat = status.heartbeat_seconds;
  previous.routes = new Map(status.routes.map((route) => [route.name, route]));
}

function showFigures(status) {
  const sum = (read) => status.routes.reduce((total, route) => total + read(route), 0);
  const spooled = status.endpoints.reduce((total, end) => total + end.spool.messages, 0);
  const known = status.routes.every((route) => route.rate !== null);
  const figures = {
    "receive rate": rate(known ? sum((route) => route.rate) : null),
    "received": amount(sum((route) => route.received)),
    "delivered": amount(sum((route) => route.delivered)),
    "spooled on disk": amount(spooled),
    "dead letters": amount(status.dead_letters.count),
    "loops dropped": amount(sum((route) => route.loops)),
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
  if (status.time <= previous.time && status.started === previous.started) return; // no newer status
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

// Newest first. The key of a row is its position, so that a new refusal changes texts only.
function showRefusals(list) {
  refusals.show(list.map((refusal, position) => ({ ...refusal, position })), (refusal) => refusal.position);
}

function filter() {
  const wanted = byId("filter").value.toLowerCase().split(/\s+/).filter(Boolean);
  const onlyProblems = byId("problems").checked;
  let shown = 0;
  for (const row of routes.rows.values()) {
    const text = `${row.texts[0]} ${row.texts[1]}`.toLowerCase();
    const hidden = !wanted.every((word) => text.includes(word)) || (onlyProblems && !hasProblem(row.entry));
    if (row.element.hidden !== hidden) row.element.hidden = hidden;
    shown += hidden ? 0 : 1;
  }
  put(byId("routes-shown"), `${shown} of ${routes.rows.size}`);
}

async function request(path) {
  const headers = session.token ? { Authorization: `Bearer ${session.token}` } : {};
  const response = await fetch(path, { headers, cache: "no-store", signal: AbortSignal.timeout(10000) });
  if (response.status === 401) logIn("The token is wrong.");
  return response;
}

async function poll() {
  clearTimeout(session.timer);
  try {
    const response = await request("api/status");
    if (response.status === 401) return;
    const found = await response.json();
    if (response.ok) show(found);
    else showState(`✗ ${found.error}`, "bad");
  } catch {
    showState("✗ no answer from the gateway", "bad");
  }
  if (!document.hidden) session.timer = setTimeout(poll, previous.routes.size > MANY_ROUTES ? 2 * POLL_INTERVAL : POLL_INTERVAL);
}

function logIn(error) {
  session.token = "";
  byId("login").hidden = false;
  put(byId("login-error"), error);
  showState("token required", "warn");
  byId("token").focus();
}

// --- name lookup ----------------------------------------------------------------------------

function line(title, ...parts) {
  const row = make("li");
  row.append(make("strong", title), " ", ...parts);
  return row;
}
function limitUsage(list) { return list.map((each) => `${each.actual} of ${each.maximum} ${each.unit}`).join(", "); }

function translation(made) {
  if (made.error || made.refused) {
    return [make("span", made.rule, "mark bad"), ` ${made.error || made.refused}`];
  }
  const texts = made.names || made.patterns || [made.name];
  const parts = texts.flatMap((text, index) => (index ? [", ", make("code", text)] : [make("code", text)]));
  if (made.exact === false) parts.push(" ", make("span", "wider", "mark warn"), ` filtered by ${made.residual}`);
  if (made.omits) parts.push(` not covered: ${made.omits}`);
  if (made.used && made.used.length) parts.push(make("span", ` ${limitUsage(made.used)}`, "quiet"));
  return parts;
}

function routeLine(route) {
  const extent = route.whole === undefined ? "it" : route.whole ? "all of it" : "a part of it";
  const row = line(route.route, `selects ${extent} from ${route.endpoint}, `, make("code", route.pattern));
  const captures = route.captures.map(([name, value]) => `{${name}} = ${value}`).join(", ");
  if (route.example) row.append(", for example ", make("code", route.example));
  if (captures) row.append(make("span", ` ${captures}`, "quiet"));
  const list = row.appendChild(make("ul"));
  for (const made of route.made) {
    const end = list.appendChild(line(`→ ${made.target} (${made.system})`));
    if (made.rule) end.append(make("span", made.rule, "mark bad"), ` ${made.reason}`);
    else end.append(make("code", made.name), make("span", ` ${limitUsage(made.used)}`, "quiet"));
    for (const back of made.back) end.append(make("div", `from there, ${back.route} delivers it as ${back.name} to ${back.endpoint}`, "quiet"));
  }
  return row;
}

function showAnswer(found) {
  const box = byId("answer");
  if (found.error) return box.replaceChildren(make("p", found.error));
  const { check } = found;
  if (check.valid !== true) {
    const error = make("p");
    error.append(make("span", check.rule, "mark bad"), ` ${check.detail || check.error}`);
    return box.replaceChildren(error);
  }
  const summary = make("p", `Valid ${found.kind} in ${found.system}. `);
  if (found.used && found.used.length) summary.append(make("span", `It uses ${limitUsage(found.used)}.`, "quiet"));
  for (const warning of check.warnings || []) summary.append(make("div", warning, "quiet"));
  const systems = make("ul");
  for (const made of found.elsewhere) systems.append(line(made.system, ...translation(made)));
  const selecting = make("ul");
  for (const route of found.routes) selecting.append(routeLine(route));
  const none = found.routes.length ? [] : [make("p", "No route selects it.", "quiet")];
  const more = found.more ? [make("p", `${found.more} more routes were not examined or are not shown.`, "quiet")] : [];
  box.replaceChildren(summary, make("h3", "Other systems"), systems, make("h3", "Routes"), selecting, ...none, ...more);
  return undefined;
}

async function lookUp() {
  const text = byId("text").value;
  const lookup = ++session.lookups;
  if (!text) return byId("answer").replaceChildren();
  const kind = document.querySelector("input[name=kind]:checked").value;
  const query = new URLSearchParams({ system: byId("system").value, kind, text });
  try {
    const response = await request(`api/explain?${query}`);
    const found = response.headers.get("content-type") === "application/json" ? await response.json() : { error: `refused: ${response.status}` };
    if (lookup === session.lookups) showAnswer(found);
  } catch {
    if (lookup === session.lookups) showAnswer({ error: "no answer from the gateway" });
  }
  return undefined;
}

// --- start ----------------------------------------------------------------------------------

let typing = 0;
byId("filter").addEventListener("input", filter);
byId("problems").addEventListener("change", filter);
byId("names").addEventListener("submit", (event) => { event.preventDefault(); lookUp(); });
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
