// The name lookup.

// Chooses the system of the first target, unless somebody chose one.
function suggestTarget(ends) {
  const [target, end] = [byId("target"), ends.find((each) => each.side === "sink")];
  if (!end || target.dataset.chosen) return;
  target.value = end.system;
  target.dataset.chosen = "yes";
}

function line(title, ...parts) {
  const row = make("li");
  row.append(make("strong", title), " ", ...parts);
  return row;
}
function limitUsage(list) { return list.map((each) => `${each.actual} of ${each.maximum} ${each.unit}${each.why}`).join(", "); }

function translation(made) {
  if (made.refused) return [make("span", made.rule, "mark bad"), ` ${made.refused}`];
  const texts = made.names || made.patterns;
  const parts = texts.flatMap((text, index) => (index ? [", ", make("code", text)] : [make("code", text)]));
  if (made.exact === false) parts.push(" ", make("span", "wider", "mark warn"), ` filtered by ${made.residual}`);
  if (made.omits) parts.push(` not covered: ${made.omits}`);
  if (made.used && made.used.length) parts.push(make("span", ` ${limitUsage(made.used)}`, "quiet"));
  return parts;
}

function routeLine(route) {
  const extent = route.whole === undefined ? "it" : route.whole ? "all of it" : "a part of it";
  const row = line(route.route, `selects ${extent} from ${route.endpoint}, `, make("code", route.pattern));
  const captures = route.captures.map(([name, value]) => `{${name}} = ${value || "''"}`).join(", ");
  if (route.selector) row.append(", where ", make("code", route.selector), ", not evaluated");
  if (route.example) row.append(", for example ", make("code", route.example));
  if (captures) row.append(make("span", ` ${captures}`, "quiet"));
  const list = row.appendChild(make("ul"));
  for (const made of route.made) {
    const end = list.appendChild(line(`→ ${made.target} (${made.system})`));
    if (made.rule) end.append(make("span", made.rule, "mark bad"), ` ${made.reason}`);
    else end.append(make("code", made.name), made.empty_key ? " (an empty key) " : "", make("span", ` ${limitUsage(made.used)}`, "quiet"));
    if (made.partition) end.append(make("div", `partition: ${made.partition}`, "quiet"));
    if (made.thin) end.append(make("div", `not every message: ${made.thin}`, "quiet"));
    for (const back of made.back) end.append(make("div", `from there, ${back.route} delivers it as ${back.name} to ${back.endpoint}`, "quiet"));
  }
  return row;
}

function quoted(text) { return `'${text.replaceAll("'", "'\\''")}'`; }

function proposal({ text, proposal: made }) {
  if (!made) return [];
  const title = make("h3", "Proposed route");
  if (made.refused) return [title, make("p", made.refused)];
  const [from, to] = made.endpoints;
  const back = made.why_not_back ? `It has no way back: ${made.why_not_back}.` : "The wanted name becomes this name again.";
  const prove = make("p", `Checked for this name alone. ${back} Prove it beside the other routes: `);
  const command = `gateway explain ${quoted(text)} --config CONFIG --from ${from} --to ${to} --wanted ${quoted(byId("wanted").value)}`;
  prove.append(commandLine(command));
  return [title, make("pre", made.yaml, "mono"), prove];
}

function hint(found) { return found.hint ? [make("p", `${found.hint[0].toUpperCase()}${found.hint.slice(1)}`)] : []; }

function showAnswer(found) {
  const box = byId("answer");
  if (found.error) return box.replaceChildren(make("p", found.error));
  const { check } = found;
  if (check.valid !== true) {
    const error = make("p");
    error.append(make("span", check.rule, "mark bad"), ` ${check.detail}`);
    return box.replaceChildren(error, ...hint(found));
  }
  const summary = make("p", `Valid ${found.kind} in ${found.system}. `);
  if (found.used && found.used.length) summary.append(make("span", `It uses ${limitUsage(found.used)}.`, "quiet"));
  for (const warning of check.warnings || []) summary.append(make("div", warning, "quiet"));
  const systems = make("ul");
  for (const made of found.elsewhere) systems.append(line(made.system, ...translation(made)));
  const selecting = make("ul");
  for (const route of found.routes) selecting.append(routeLine(route));
  const none = found.routes.length ? [] : [make("p", "No route selects it.", "quiet")];
  for (const route of found.not_taken) selecting.append(line(route.route, `does not take it from ${route.endpoint}, `, make("code", route.pattern), `: ${route.why_not}`));
  const more = found.more ? [make("p", `${found.more} more routes were not examined or are not shown.`, "quiet")] : [];
  box.replaceChildren(summary, ...hint(found), ...proposal(found), make("h3", "Other systems"), systems, make("h3", "Routes"), selecting, ...none, ...more);
  return undefined;
}

async function lookUp() {
  const text = byId("text").value;
  const lookup = ++session.lookups;
  if (!text) return byId("answer").replaceChildren();
  const kind = document.querySelector("input[name=kind]:checked").value;
  const query = new URLSearchParams({ system: byId("system").value, kind, text });
  const [payload, properties] = [byId("payload").value, byId("properties").value.split(/\s*,\s*/).filter(Boolean).join("\n")];
  if (kind === "name") for (const [name, value] of Object.entries({ payload, properties })) if (value) query.set(name, value);
  const wanted = byId("wanted").value;
  if (wanted) for (const [name, value] of [["wanted", wanted], ["target", byId("target").value]]) query.set(name, value);
  try {
    const response = await request(`api/explain?${query}`);
    const found = response.headers.get("content-type") === "application/json" ? await response.json() : { error: `refused: ${response.status}` };
    if (lookup === session.lookups) showAnswer(found);
  } catch {
    if (lookup === session.lookups) showAnswer({ error: "no answer from the gateway" });
  }
  return undefined;
}
