// Polls /api/status and updates the cells that changed. Text from the gateway is never HTML.

const POLL_INTERVAL = 1000; // milliseconds
const MANY_ROUTES = 300; // above this number, the interval is doubled
const session = { token: "", timer: 0, lookups: 0 };
const previous = { time: 0, started: 0, maxHeartbeatAge: 0, status: null, routes: new Map() };

function stale(route) { return route.heartbeat_age !== null && route.heartbeat_age >= previous.maxHeartbeatAge; }
function hasProblem(route) { return stateOf(route) !== "connected" || route.lag > 0 || stale(route) || Object.keys(route.rules).length > 0; }

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
  previous.maxHeartbeatAge = status.max_heartbeat_age;
  previous.status = status;
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
    "dead letters kept": amount(status.dead_letters.count),
    "loops dropped": amount(sum((route) => (route.both ? 0 : route.loops))),
    "duplicates": amount(sum((route) => route.duplicates)),
    "archive queue": size(status.archive.queued),
  };
  const again = status.dead_letters.sent_again;
  const notes = { "dead letters kept": again ? `, ${amount(again)} sent again` : "" };
  const list = byId("figures");
  for (const [title, text] of Object.entries(figures)) {
    let value = list.querySelector(`[data-figure="${title}"]`);
    if (!value) {
      const box = list.appendChild(make("div"));
      box.append(make("dt"));
      value = box.appendChild(make("dd"));
      value.dataset.figure = title;
    }
    put(value, text);
    put(value.previousSibling, title + (notes[title] || ""));
  }
}

// The part of this instance in its pair; nothing for a gateway alone.
function showPair(pair) {
  byId("pair").hidden = pair === null;
  if (pair === null) return;
  const others = pair.standby.length > 0 ? `${pair.standby.join(", ")} waits` : "no standby waits";
  const rest = pair.role === "holder" ? others : `${pair.active || "no instance"} is active`;
  const failure = pair.failure === "" ? "" : `; ${pair.failure}`;
  put(byId("pair"), `${pair.instance} is the ${pair.role} for ${age(Math.round(pair.since))}, lease ${pair.number}; ${rest}${failure}`);
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
  put(byId("reloaded"), `${clock(status.reloaded)} UTC`);
  document.title = `${status.ready ? "" : "! "}${status.gateway}`;
  const standby = status.pair !== null && status.pair.role === "standby";
  showState(!status.ready ? "✗ not ready" : standby ? "✓ standby" : "✓ ready", status.ready ? "good" : "bad");
  showPair(status.pair);
  showList("reasons", status.reasons);
  showList("warnings", status.warnings);
  showFigures(status);
  endpoints.show(status.endpoints, endpointKey);
  routes.show(status.routes, (route) => route.name);
  showTrends(endpoints, (name) => name);
  showTrends(routes, routeKey);
  showMap(status);
  showDetails(status);
  suggestTarget(status.endpoints);
  filter();
  refusals.element.hidden = status.refusals.length === 0;
  byId("no-refusals").hidden = status.refusals.length > 0;
  showRefusals(status.refusals);
}

function showList(id, lines) {
  const list = byId(id);
  list.hidden = lines.length === 0;
  const text = lines.join("\n");
  if (list.dataset.text === text) return;
  list.dataset.text = text;
  list.replaceChildren(...lines.map((line) => make("li", line)));
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
    const text = `${row.texts[0]} ${row.texts[1]} ${row.texts[2]}`.toLowerCase();
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
    if (response.ok) {
      show(found);
      await pollTrends();
    }
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
