// The rates of the last ten minutes as sparklines. A route or endpoint without messages has no entry.

const trends = { number: 0, started: 0, samples: 0, kept: 60, interval: 10, at: 0, rates: new Map() };

function endpointKey(end) { return `${end.side} ${end.name}`; }
function routeKey(name) { return `route ${name}`; }

// Asks for the samples since the last ones, as often as the gateway takes one.
async function pollTrends() {
  const restarted = trends.started !== previous.started;
  if (!restarted && previous.time - trends.at < trends.interval) return;
  const after = restarted ? 0 : trends.number;
  const response = await request(`api/history?after=${after}`);
  if (!response.ok) return;
  const found = await response.json();
  if (restarted || found.number < trends.number) Object.assign(trends, { samples: 0, rates: new Map() });
  const { kept } = found;
  const names = new Set([...trends.rates.keys(), ...Object.keys(found.rates)]);
  const merged = new Map();
  for (const name of names) {
    const before = trends.rates.get(name) || new Array(trends.samples).fill(0);
    const values = [...before, ...(found.rates[name] || new Array(found.samples).fill(0))].slice(-kept);
    if (values.some(Boolean)) merged.set(name, values);
  }
  const samples = Math.min(kept, trends.samples + found.samples);
  Object.assign(trends, { number: found.number, started: previous.started, at: previous.time, kept, interval: found.interval, samples, rates: merged });
}

function sumOf(keys) {
  const lists = keys.map((key) => trends.rates.get(key)).filter(Boolean);
  return lists.length ? lists[0].map((_, index) => lists.reduce((sum, list) => sum + list[index], 0)) : [];
}

// A filled line; the newest sample is at the right end.
function sparkPath(values, width, height) {
  if (!values.length) return `M0 ${height}H${width}`;
  const highest = Math.max(...values) || 1;
  const step = width / (trends.kept - 1);
  const x = (index) => (width - (values.length - 1 - index) * step).toFixed(1);
  const y = (value) => (height - 1 - (value / highest) * (height - 2)).toFixed(1);
  const points = values.map((value, index) => `${x(index)} ${y(value)}`);
  return `M${x(0)} ${height}L${points.join("L")}V${height}Z`;
}

// Fills a cell or another element with the sparkline of a key and its highest rate.
function showTrend(element, key) {
  const values = trends.rates.get(key) || [];
  let svg = element.querySelector("svg");
  if (!svg) {
    svg = draw(element, "svg", { class: "trend", viewBox: "0 0 120 20", preserveAspectRatio: "none", role: "img" });
    draw(svg, "path", { class: "spark" });
    element.append(make("span", "", "quiet peak"));
  }
  const peak = values.length ? `≤ ${rate(Math.max(...values))}` : "";
  set(svg.firstChild, "d", sparkPath(values, 120, 20));
  set(svg, "aria-label", values.length ? `at most ${rate(Math.max(...values))} in the last ten minutes` : "no messages in the last ten minutes");
  put(element.lastChild, peak);
}
