// The flow map as SVG. Its shape is drawn anew when brokers, routes or the width change.

const SVG = "http://www.w3.org/2000/svg";
const MARGIN = 14; // pixels around the map
const MAX_RATES = 6; // edges that a narrow map shows with their rates
const SHORT = 44; // pixels, half of the longest label of a narrow map
const CHARACTER = 7.1; // pixels, the mean width of a character of a label

function draw(parent, tag, attributes = {}, text = "") {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (text) element.textContent = text;
  return parent.appendChild(element);
}
function set(element, name, value) { if (element.getAttribute(name) !== String(value)) element.setAttribute(name, value); }
function cut(text, pixels) {
  const most = Math.max(3, Math.floor(pixels / CHARACTER));
  return text.length <= most ? text : `${text.slice(0, most - 1)}…`;
}
// Shows as much of a text as fits: its letters are measured, for a name may have wide ones only.
function fit(element, text, pixels) {
  put(element, text);
  for (let most = text.length; most > 1 && element.getComputedTextLength() > pixels;) {
    most = Math.min(most - 1, Math.floor(most * pixels / element.getComputedTextLength()));
    element.textContent = `${text.slice(0, most)}…`;
  }
}
function strokeOf(number) { return Math.min(10, 1.6 + 2 * Math.log10(1 + number)).toFixed(1); }

const flowMap = { shape: "", parts: new Map(), model: null, selected: "" };

function showMap(status) {
  flowMap.model = modelOf(status);
  const { nodes, edges, hidden } = flowMap.model;
  byId("map-section").hidden = nodes.length === 0;
  if (nodes.length === 0) return; // a reload replaces every endpoint
  const width = byId("map-scroll").clientWidth - 2 * MARGIN;
  const shape = JSON.stringify([width, nodes.map((node) => [node.key, node.name]), edges.map((edge) => edge.key)]);
  if (shape !== flowMap.shape) {
    flowMap.shape = shape;
    drawMap(nodes, edges, width);
  }
  for (const edge of edges) updateEdge(edge, nodes);
  for (const node of nodes) updateNode(node);
  put(byId("map-note"), hidden ? `${count.format(hidden)} more pairs of brokers are in the table of routes.` : "");
}

function drawMap(nodes, edges, width) {
  const svg = byId("map");
  const focused = document.activeElement?.closest?.("#map [data-key]")?.dataset.key;
  const places = layOut(nodes.map((node) => node.key), edges, width);
  svg.replaceChildren();
  set(svg, "viewBox", `-4 -18 ${places.width + 8} ${places.height + 26}`);
  set(svg, "width", places.width + 8);
  set(svg, "height", places.height + 26);
  flowMap.parts = new Map();
  for (const edge of edges) flowMap.parts.set(edge.key, drawEdge(svg, edge, places));
  for (const edge of edges) flowMap.parts.get(edge.key).label = drawLabel(svg, edge, places); // over every line
  for (const node of nodes) flowMap.parts.set(`node ${node.key}`, drawNode(svg, node, places.nodes.get(node.key)));
  if (focused && flowMap.parts.has(focused)) flowMap.parts.get(focused).group.focus();
}

function control(svg, key) { return draw(svg, "g", { tabindex: 0, role: "button", "data-key": key }); }

function drawEdge(svg, edge, places) {
  const curve = places.edges.get(edge.key);
  const group = control(svg, edge.key);
  const title = draw(group, "title");
  draw(group, "path", { class: "hit", d: curve.path });
  const line = draw(group, "path", { class: "flow", d: curve.path });
  const moving = draw(group, "path", { class: "moving", d: curve.path });
  draw(group, "path", { class: "arrow", d: curve.arrow });
  return { group, title, line, moving, start: curve.start, down: places.down, room: places.room };
}

// The text beside the start of an edge. The edge has the same as its accessible name.
function drawLabel(svg, edge, places) {
  const { point: [x, y], side, index } = places.edges.get(edge.key).start;
  const at = places.down
    ? { x: Math.min(Math.max(x, SHORT), places.width - SHORT), y: y + side * (16 + 15 * (index % 4)) + (side > 0 ? 0 : 8), "text-anchor": "middle" }
    : { x: x + side * 10, y, "text-anchor": side < 0 ? "end" : "start" };
  return draw(svg, "text", { ...at, "aria-hidden": true, class: "label" });
}

function updateEdge(edge, nodes) {
  const part = flowMap.parts.get(edge.key);
  const name = (key) => nodes.find((node) => node.key === key).name;
  const stroke = strokeOf(edge.rate);
  const facts = [rate(edge.rate), troubles(edge)].filter(Boolean).join(", ");
  const text = `${edgeTitle(edge)}: ${name(edge.from)} to ${name(edge.to)}, ${facts}${troubles(edge) ? "" : ", connected"}`;
  set(part.group, "class", `edge ${edge.state.replace(" ", "-")}${part.group.dataset.key === flowMap.selected ? " selected" : ""}`);
  set(part.group, "aria-label", text);
  put(part.title, text);
  set(part.line, "stroke-width", stroke);
  set(part.moving, "class", edge.rate > 0 && edge.state === "connected" ? "moving" : "moving still");
  if (part.down) return put(part.label, shortLabel(edge));
  const { point: [, y], rises } = part.start; // the label is on the side from which the line bends away
  set(part.label, "y", (rises ? y + stroke / 2 + 13 : y - stroke / 2 - 4).toFixed(1));
  const rest = ` ${facts}`;
  return put(part.label, cut(edgeTitle(edge), part.room - 24 - rest.length * CHARACTER) + rest);
}

// A narrow map has room for few words.
function shortLabel(edge) {
  if (edge.state !== "connected") return edge.state;
  return flowMap.model.edges.length <= MAX_RATES ? rate(edge.rate) : "";
}

function drawNode(svg, node, box) {
  const group = control(svg, `node ${node.key}`);
  const title = draw(group, "title");
  draw(group, "rect", { ...box, rx: 8 });
  const [x, top] = [box.x + 10, box.y + box.height / 2 - 36];
  fit(draw(group, "text", { class: "name", x, y: top + 21 }), node.name, box.width - 20);
  const state = draw(group, "text", { class: "quiet", x, y: top + 38 });
  const spark = draw(group, "path", { class: "spark", transform: `translate(${x} ${top + 44})` });
  return { group, title, state, spark, width: box.width - 20 };
}

function updateNode(node) {
  const part = flowMap.parts.get(`node ${node.key}`);
  const connected = node.connection === "connected";
  const facts = connected ? node.system : `${node.connection}, ${node.system}`;
  const text = `Broker ${node.name}: ${node.connection}, ${node.system}`;
  set(part.group, "class", `node ${connected ? "" : "off"}${part.group.dataset.key === flowMap.selected ? " selected" : ""}`);
  set(part.group, "aria-label", text);
  put(part.title, text);
  if (part.facts !== facts) fit(part.state, facts, part.width);
  part.facts = facts;
  set(part.spark, "d", sparkPath(sumOf(node.ends.map(endpointKey)), part.width, 20));
}

function choose(event) {
  const group = event.target.closest("[data-key]");
  if (!group || (event.type === "keydown" && event.key !== "Enter" && event.key !== " ")) return;
  event.preventDefault();
  const { key } = group.dataset;
  const edge = flowMap.model.edges.find((each) => each.key === key);
  openDetails(edge && edge.flows.length === 1 ? { route: edge.flows[0].route.name, key } : { key });
}
