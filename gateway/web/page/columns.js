// The tables of endpoints, routes and refusals.

const endpoints = new Table("endpoints", [
  ["endpoint", "", (end) => end.name],
  ["side", "whole", (end) => `${end.side}, ${end.system}`],
  ["connection", "", (end) => end.connection, connectionMark],
  ["address", "whole", (end) => end.address],
  ["last 10 min", "trend", () => ""],
  ["since", "number", (end) => age(Math.max(0, Math.round(previous.time - end.since)))],
  ["reconnects", "number", (end) => (end.reconnects ? amount(end.reconnects) : "")],
  ["reason", "long", (end) => end.reason || end.gap],
  ["pending", "long", pending, (end) => (end.spool.share >= 0.8 ? "bad" : "")],
  ["driver counts", "long", (end) => words(tally(Object.fromEntries(Object.entries(end.counts).filter(([, number]) => number))))],
]);
const routes = new Table("routes-table", [
  ["route", "", (route) => route.name, null, "route"],
  ["state", "whole", stateOf, (route) => MARKS[stateOf(route)]],
  ["source → targets", "names", namesOf],
  ["rate", "number", (route) => rate(route.rate)],
  ["last 10 min", "trend", () => ""],
  ["received", "number", (route) => amount(route.received)],
  ["delivered", "number", (route) => amount(route.delivered)],
  ["lag", "number", (route) => (route.lag ? age(route.lag) : ""), (route) => (route.lag > 60 ? "bad" : "warn")],
  ["latency", "number", (route) => latency(route.latency)],
  ["heartbeat", "number", (route) => age(route.heartbeat_age), (route) => (stale(route) ? "bad" : "")],
  ["guarantee", "whole", (route) => words(route.guarantee)],
  ["refused since start", "long", (route) => tally(route.rules), () => "bad"],
  ["dropped or changed", "long", dropped],
]);
const refusals = new Table("refusals", [
  ["time (UTC)", "whole", (refusal) => clock(refusal.time)],
  ["route", "", (refusal) => refusal.route],
  ["rule", "", (refusal) => refusal.rule, () => "bad"],
  ["name", "long mono", (refusal) => refusal.name],
  ["reason", "long", (refusal) => refusal.reason],
  ["to do", "long", (refusal) => refusal.advice],
]);

function connectionMark(end) { return { connected: "good", connecting: "warn" }[end.connection] || "bad"; }
function namesOf(route) { return `${route.sources.join(", ")} → ${route.target_names.join(", ")}`; }
function pending(end) {
  const { messages, bytes, share, age: oldest } = end.spool;
  const memory = end.backlog ? `${amount(end.backlog)} at the broker` : end.held ? `${size(end.held)} in memory` : "";
  if (!messages) return memory;
  const used = `${(share * 100).toFixed(share < 0.1 ? 1 : 0)} % of the spool`;
  return `${memory && `${memory}, `}${amount(messages)} on disk (${size(bytes)}, ${used}, oldest ${age(oldest)})`;
}
// A route in both directions receives its own copies back: these echoes are no loops of the mapping.
function dropped(route) {
  const lost = tally(route.lost_fields);
  return [
    route.loops && `${route.both ? "echoes of its reverse route" : "loops"} dropped ${amount(route.loops)}`,
    route.duplicates && `duplicates ${amount(route.duplicates)}`,
    route.ignored && `retained messages ignored ${amount(route.ignored)}`,
    route.unselected && `not selected ${amount(route.unselected)}`,
    route.thinned && `thinned ${amount(route.thinned)}`,
    lost && `lost fields: ${words(lost)}`,
  ].filter(Boolean).join(", ");
}

function showTrends(table, key) {
  const column = table.columns.findIndex(([, kind]) => kind === "trend");
  for (const [name, row] of table.rows) {
    if (row.trend === trends.number) continue;
    row.trend = trends.number;
    showTrend(row.cells[column], key(name));
  }
}
