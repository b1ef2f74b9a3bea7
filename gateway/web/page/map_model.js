// The flow map of a status: brokers as nodes, and the flows between them as edges.

const STATES = ["refusing", "stuck", "spooling", "not connected", "connected"]; // the worst first
const MARKS = { refusing: "bad", stuck: "bad", spooling: "warn", "not connected": "off", connected: "good" };
const MAX_SINGLE = 4; // routes between two brokers that have edges of their own
const MAX_EDGES = 40; // edges; beyond them the routes of each pair of brokers are one edge
const MAX_PAIRS = 60; // pairs of brokers that are shown

function worst(states) { return STATES.find((state) => states.includes(state)) || "connected"; }
function stateOf(route) { return worst(route.flows.map(([, , state]) => state)); }

// The pairs of brokers with their routes: the worst and busiest pairs come first.
function pairsOf(status) {
  const broker = new Map(status.endpoints.filter((end) => end.side !== "tap").map((end) => [end.name, end.broker]));
  const pairs = new Map();
  for (const route of status.routes) {
    for (const [source, target, state] of route.flows) {
      if (!broker.has(source) || !broker.has(target)) continue; // a reload is in progress
      const [from, to] = [broker.get(source), broker.get(target)];
      const key = `${from}>${to}`;
      if (!pairs.has(key)) pairs.set(key, { key, from, to, flows: [] });
      pairs.get(key).flows.push({ route, state });
    }
  }
  for (const pair of pairs.values()) measure(pair);
  return [...pairs.values()];
}

function measure(edge) {
  edge.state = worst(edge.flows.map((flow) => flow.state));
  edge.rate = edge.flows.reduce((sum, { route }) => sum + (route.rate || 0), 0);
  return edge;
}

function modelOf(status) {
  const pairs = pairsOf(status);
  const shown = pairs.length <= MAX_PAIRS ? pairs : pairs.sort((a, b) => STATES.indexOf(a.state) - STATES.indexOf(b.state) || b.rate - a.rate).slice(0, MAX_PAIRS);
  const single = (pair) => pair.flows.length <= MAX_SINGLE;
  const few = shown.reduce((sum, pair) => sum + (single(pair) ? pair.flows.length : 1), 0) <= MAX_EDGES;
  const edges = shown.flatMap((pair) => (few && single(pair)
    ? pair.flows.map((flow) => measure({ ...pair, key: `${pair.key} ${flow.route.name}`, flows: [flow] }))
    : [pair]));
  const used = new Set(shown.flatMap((pair) => [pair.from, pair.to]));
  const nodes = [...used].map((key) => nodeOf(key, status));
  return { nodes, edges, hidden: pairs.length - shown.length };
}

function nodeOf(key, status) {
  const ends = status.endpoints.filter((end) => end.broker === key);
  const bad = ends.find((end) => end.connection !== "connected");
  return {
    key,
    ends,
    name: [...new Set(ends.map((end) => end.name))].join(", "),
    system: [...new Set(ends.map((end) => end.system))].join(", "),
    connection: bad ? bad.connection : "connected",
  };
}

function edgeTitle(edge) {
  const [{ route }] = edge.flows;
  return edge.flows.length === 1 ? route.name : `${count.format(edge.flows.length)} routes`;
}

// The states of a bundle that are not "connected", with their numbers.
function troubles(edge) {
  if (edge.flows.length === 1) return edge.state === "connected" ? "" : edge.state;
  return STATES.slice(0, -1).map((state) => [edge.flows.filter((flow) => flow.state === state).length, state])
    .filter(([number]) => number).map(([number, state]) => `${count.format(number)} ${state}`).join(", ");
}
