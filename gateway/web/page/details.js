// The details of an edge, a broker or a route that was chosen, below the map.

const MAX_LISTED = 100; // routes of a bundle or a broker
const MAX_PASSING = 50; // copies of the messages that passed last
const details = { chosen: null, origin: null, request: 0, facts: "" };

const detailRoutes = new Table("details-routes", [
  ["route", "", (flow) => flow.route.name, null, "route"],
  ["state", "", (flow) => flow.state, (flow) => MARKS[flow.state]],
  ["rate", "number", (flow) => rate(flow.route.rate)],
  ["source → targets", "long", (flow) => namesOf(flow.route)],
]);
const detailNames = new Table("details-names", [
  ["passed (UTC)", "whole", (seen) => clock(seen.time)],
  ["source", "", (seen) => seen.endpoint],
  ["name there", "long mono", (seen) => seen.name],
  ["target", "", (seen) => seen.copy.target],
  ["name at the target", "long mono", (seen) => seen.copy.name],
  ["rule", "", (seen) => seen.copy.rule, () => "bad"],
]);
const detailRefusals = new Table("details-refusals", [
  ["refused (UTC)", "whole", (refusal) => clock(refusal.time)],
  ["rule", "", (refusal) => refusal.rule, () => "bad"],
  ["name", "long mono", (refusal) => refusal.name],
  ["reason", "long", (refusal) => refusal.reason],
  ["to do", "long", (refusal) => refusal.advice],
]);

function openDetails(chosen) {
  details.origin = document.activeElement;
  details.chosen = chosen;
  flowMap.selected = chosen.key || "";
  byId("details").hidden = false;
  showDetails(previous.status);
  byId("details-title").focus();
}

function closeDetails() {
  details.chosen = null;
  flowMap.selected = "";
  byId("details").hidden = true;
  const { group } = flowMap.parts.get(details.origin?.dataset.key) || {};
  (group || details.origin)?.focus();
  showMap(previous.status);
}

function showDetails(status) {
  const { chosen } = details;
  if (!chosen) return undefined;
  if (chosen.route) return showRoute(chosen.route).catch(() => {}); // the next poll shows the fault
  const edge = flowMap.model.edges.find((each) => each.key === chosen.key);
  const node = flowMap.model.nodes.find((each) => `node ${each.key}` === chosen.key);
  if (!edge && !node) return closeDetails();
  const name = (key) => flowMap.model.nodes.find((each) => each.key === key).name;
  if (edge) {
    showFacts(`${edgeTitle(edge)}: ${name(edge.from)} → ${name(edge.to)}`, [["state", edge.state, MARKS[edge.state], troubles(edge)], ["rate", rate(edge.rate)]]);
    showTrend(byId("details-trend"), "");
    return listFlows(edge.flows);
  }
  const names = new Set(node.ends.map((end) => end.name));
  const flows = status.routes.flatMap((route) => route.flows.filter(([from, to]) => names.has(from) || names.has(to)).map(([, , state]) => ({ route, state })));
  const sides = node.ends.flatMap((end) => [
    [`${end.name}, ${end.side}`, end.connection, connectionMark(end), [end.address, end.reason, end.retry_in === null ? "" : `next attempt ${soon(end.retry_in)}`].filter(Boolean).join("; ")],
    ...(pending(end) ? [[`${end.name}, pending`, pending(end)]] : []),
  ]);
  showFacts(`Broker ${node.name}`, sides);
  return listFlows(flows);
}

// The worst and busiest routes, each once.
function listFlows(flows) {
  const byName = new Map();
  for (const flow of flows) {
    const known = byName.get(flow.route.name);
    if (!known || STATES.indexOf(flow.state) < STATES.indexOf(known.state)) byName.set(flow.route.name, flow);
  }
  const sorted = [...byName.values()].sort((a, b) => STATES.indexOf(a.state) - STATES.indexOf(b.state) || (b.route.rate || 0) - (a.route.rate || 0));
  const shown = sorted.slice(0, MAX_LISTED);
  detailRoutes.show(shown, (flow) => flow.route.name);
  detailRoutes.element.hidden = false;
  detailRefusals.element.hidden = true;
  showNames([]);
  put(byId("details-names-note"), "");
  byId("details-trend").hidden = true;
  put(byId("details-note"), sorted.length > shown.length ? `${count.format(sorted.length - shown.length)} more routes: filter the table below.` : "");
}

async function showRoute(name) {
  const number = ++details.request;
  const response = await request(`api/route?${new URLSearchParams({ name })}`);
  if (number !== details.request || details.chosen?.route !== name) return;
  const found = await response.json();
  detailRoutes.element.hidden = true;
  if (!response.ok) {
    showFacts(`Route ${name}`, [["state", found.error]]);
    showNames([]);
    return;
  }
  const route = previous.routes.get(name);
  const waiting = Object.assign({}, ...found.flows.map((flow) => flow.retry_in));
  const next = Object.entries(waiting).map(([end, seconds]) => `${end} ${soon(seconds)}`).join(", ");
  showFacts(`Route ${name}`, [
    ...found.flows.map((flow) => [`${flow.source} → ${flow.target}`, flow.state, MARKS[flow.state], flow.reason]),
    ["next attempt to connect", next || "none: every connection is open"],
    ...found.patterns.flatMap(patternFacts),
    ["guarantee", words(found.guarantee)],
    ...(route ? [["messages", `${rate(route.rate)}, ${amount(route.received)} received, ${amount(route.delivered)} delivered`]] : []),
  ]);
  const trend = byId("details-trend");
  trend.hidden = !trends.rates.has(routeKey(name));
  showTrend(trend, routeKey(name));
  detailRefusals.show(found.refusals.map((refusal, position) => ({ ...refusal, position })), (refusal) => refusal.position);
  detailRefusals.element.hidden = found.refusals.length === 0;
  put(byId("details-note"), found.refusals.length ? "" : "No refusals since the start.");
  const passing = await request(`api/tail?${new URLSearchParams({ route: name })}`);
  if (number !== details.request || details.chosen?.route !== name || !passing.ok) return;
  const { messages } = await passing.json();
  showNames(messages);
  put(byId("details-names-note"), messages.length ? "" : "No message has passed since these details are open.");
}

// One row a copy: its name at the source and at the target, never its payload.
function showNames(messages) {
  const copies = messages.flatMap((seen) => (seen.copies.length ? seen.copies : [{}]).map((copy) => ({ ...seen, copy: { target: "", name: "", rule: "", reason: "", ...copy } })));
  detailNames.show(copies.slice(0, MAX_PASSING).map((seen, position) => ({ ...seen, position })), (seen) => seen.position);
  detailNames.element.hidden = copies.length === 0;
}

function patternFacts(from) {
  const limits = [...from.excludes.map((text) => `except ${text}`), from.selector && `where ${from.selector}`].filter(Boolean);
  return [
    [`from ${from.endpoint}`, from.pattern, "code", limits.join(", ")],
    ...from.targets.map((to) => [`to ${to.label}`, to.templates.join(", ") || "(the name at the source)", "code"]),
  ];
}

function soon(seconds) { return seconds < 0.5 ? "now" : `in ${age(seconds)}`; }

// A list of [label, text, class of the text, more text]; only what changed is written.
function showFacts(title, entries) {
  put(byId("details-title"), title);
  const list = byId("details-facts");
  const shape = JSON.stringify([title, entries.map(([label, , kind]) => [label, kind])]);
  if (shape !== details.facts) {
    details.facts = shape;
    list.replaceChildren(...entries.map(([label, , kind]) => {
      const row = make("div");
      row.append(make("dt", label), make("dd"));
      row.lastChild.append(make(kind === "code" ? "code" : "span", "", kind && kind !== "code" ? `mark ${kind}` : ""), make("span", "", "more"));
      return row;
    }));
  }
  entries.forEach(([, text, , more = ""], index) => {
    const [first, second] = list.children[index].lastChild.children;
    put(first, text);
    put(second, more && ` ${more}`);
  });
}
