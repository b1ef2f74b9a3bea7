// The places of the flow map: brokers in layers, flows as curves between their sides.
// The main axis crosses the layers: it points right, or down on a narrow screen.

const NARROW = 640; // pixels; below this width the layers are rows
const ACROSS = { main: 176, cross: 72, port: 38, gap: 18, layer: 150, loop: 200 }; // pixels of a node and around it
const DOWN = { main: 72, cross: 108, port: 40, gap: 12, layer: 92, loop: 80 };
const MAX_LAYER_GAP = 460;
const LOOP = 40; // pixels of the shortest arc that returns to its layer

// The layer of each node: brokers that only send come first, then their neighbours. Pairs with
// flows in both directions do not count for that.
function layersOf(keys, edges) {
  const linked = new Map(keys.map((key) => [key, new Set()]));
  const pairs = new Set(edges.map(({ from, to }) => `${from}>${to}`));
  const [sending, receiving] = [new Set(), new Set()];
  for (const { from, to } of edges) {
    if (from === to) continue;
    linked.get(from).add(to);
    linked.get(to).add(from);
    if (pairs.has(`${to}>${from}`)) continue;
    sending.add(from);
    receiving.add(to);
  }
  const layer = new Map();
  const walk = (starts) => {
    starts.forEach((key) => layer.set(key, 0));
    for (const queue = [...starts]; queue.length;) {
      const key = queue.shift();
      for (const next of linked.get(key)) {
        if (layer.has(next)) continue;
        layer.set(next, layer.get(key) + 1);
        queue.push(next);
      }
    }
  };
  const busiest = [...keys].sort((a, b) => linked.get(b).size - linked.get(a).size);
  const first = [];
  for (const key of busiest.filter((each) => sending.has(each) && !receiving.has(each))) {
    if (!first.some((each) => linked.get(key).has(each))) first.push(key);
  }
  walk(first);
  for (const key of busiest) if (!layer.has(key)) walk([key]); // all its flows have a reverse
  return { layer, linked };
}

// The nodes of each layer, ordered by the places of their neighbours in the layer before.
function linesOf(keys, edges, perLine) {
  const { layer, linked } = layersOf(keys, edges);
  const lines = [];
  const place = new Map();
  for (let number = 0; number <= Math.max(0, ...layer.values()); number += 1) {
    const mean = (key) => {
      const before = [...linked.get(key)].filter((each) => layer.get(each) < number).map((each) => place.get(each));
      return before.length ? before.reduce((sum, each) => sum + each, 0) / before.length : 0;
    };
    const means = new Map(keys.filter((key) => layer.get(key) === number).map((key) => [key, mean(key)]));
    const ordered = [...means.keys()].sort((a, b) => means.get(a) - means.get(b));
    const onward = (key) => Number([...linked.get(key)].some((each) => layer.get(each) > number));
    if (ordered.length > perLine) ordered.sort((a, b) => onward(a) - onward(b)); // no edge passes behind a line
    ordered.forEach((key, index) => place.set(key, index));
    for (let start = 0; start < ordered.length; start += perLine) lines.push(ordered.slice(start, start + perLine));
  }
  return lines;
}

// The sides of their nodes that the two ends of an edge take: 1 behind a node on the main axis, -1 before it.
function sidesOf(edge, line) {
  const [from, to] = [line.get(edge.from), line.get(edge.to)];
  if (from === to) return [1, 1];
  return from < to ? [1, -1] : [-1, 1];
}

// The ends of the edges at each side of each node, as `KEY SIDE` -> list.
function portsOf(edges, line) {
  const ports = new Map();
  for (const edge of edges) {
    const sides = sidesOf(edge, line);
    [edge.from, edge.to].forEach((node, index) => {
      const end = { edge, index, node, side: sides[index], other: index ? edge.from : edge.to };
      const at = `${node} ${end.side}`;
      if (!ports.has(at)) ports.set(at, []);
      ports.get(at).push(end);
    });
  }
  return ports;
}

// Returns the size of the map, `nodes` as boxes by key, and `edges` as curves by key.
function layOut(keys, edges, width) {
  const down = width < NARROW;
  const sizes = down ? DOWN : ACROSS;
  const perLine = down ? Math.max(1, Math.floor((width + sizes.gap) / (sizes.cross + sizes.gap))) : keys.length;
  const lines = linesOf(keys, edges, perLine);
  const line = new Map(lines.flatMap((line_, number) => line_.map((key) => [key, number])));
  const ports = portsOf(edges, line);
  const most = (key) => Math.max(...[1, -1].map((side) => (ports.get(`${key} ${side}`) || []).length));
  const cross = (key) => {
    const widest = (width - sizes.gap * (perLine - 1)) / perLine;
    return down ? Math.min(Math.max(sizes.cross, (most(key) + 1) * sizes.port), Math.max(widest, sizes.cross)) : Math.max(sizes.cross, (most(key) + 1) * sizes.port);
  };
  const total = (keys_) => keys_.reduce((sum, key) => sum + cross(key), 0) + sizes.gap * (keys_.length - 1);
  const crossSize = Math.max(...lines.map(total), down ? width : 0);
  const returning = edges.some((edge) => line.get(edge.from) === lines.length - 1 && line.get(edge.to) === lines.length - 1);
  const loops = returning ? sizes.loop : 0; // room for arcs beyond the last layer
  const free = (width - loops - lines.length * sizes.main) / Math.max(1, lines.length - 1);
  const step = sizes.main + (down ? sizes.layer : Math.min(Math.max(free, sizes.layer), MAX_LAYER_GAP));
  const mainSize = step * (lines.length - 1) + sizes.main + loops;
  const shift = down ? 0 : Math.max(0, (width - mainSize) / 2);
  const boxes = new Map();
  lines.forEach((keys_, number) => {
    let at = (crossSize - total(keys_)) / 2;
    for (const key of keys_) {
      boxes.set(key, { main: shift + number * step, cross: at, size: cross(key) });
      at += cross(key) + sizes.gap;
    }
  });
  const curves = new Map(edges.map((edge) => [edge.key, { ends: [] }]));
  for (const ends of ports.values()) {
    const middle = (key) => boxes.get(key).cross + boxes.get(key).size / 2;
    ends.sort((a, b) => middle(a.other) - middle(b.other) || (a.edge.key < b.edge.key ? -1 : 1));
    ends.forEach((end, index) => {
      const box = boxes.get(end.node);
      const main = box.main + (end.side > 0 ? sizes.main : 0);
      curves.get(end.edge.key).ends[end.index] = { main, cross: box.cross + ((index + 1) * box.size) / (ends.length + 1), side: end.side, index };
    });
  }
  const point = (main, cross_) => (down ? [cross_, main] : [main, cross_]);
  for (const curve of curves.values()) Object.assign(curve, curveOf(curve.ends, point));
  const nodes = new Map([...boxes].map(([key, box]) => {
    const [x, y] = point(box.main, box.cross);
    return [key, { x, y, width: down ? box.size : sizes.main, height: down ? sizes.main : box.size }];
  }));
  const [right, bottom] = point(Math.max(mainSize, down ? 0 : width), crossSize);
  return { down, width: right, height: bottom, room: step - sizes.main, nodes, edges: curves };
}

function curveOf([from, to], point) {
  const away = from.side === to.side ? LOOP + Math.abs(to.cross - from.cross) / 6 : Math.abs(to.main - from.main) / 2;
  const tip = to.main + to.side * 2;
  const base = tip + to.side * 12;
  const at = (main, cross) => point(main, cross).map((each) => each.toFixed(1)).join(" ");
  return {
    path: `M${at(from.main, from.cross)}C${at(from.main + from.side * away, from.cross)} ${at(base + to.side * away, to.cross)} ${at(base, to.cross)}`,
    arrow: `M${at(tip, to.cross)}L${at(base, to.cross - 8)}L${at(base, to.cross + 8)}Z`,
    start: { point: point(from.main, from.cross), side: from.side, index: from.index, rises: to.cross < from.cross },
  };
}
