#include "monitoring/status_page.h"

namespace kith::monitoring {

std::string_view status_page() {
  return R"page(<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>kith</title>
<style>
:root { color-scheme: light dark; --line: #8884; --faint: #888; --good: #2a8a4a; --bad: #c0392b; }
body { font: 15px/1.45 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.3rem; margin: 0 0 .2rem; }
#sub { color: var(--faint); margin: 0 0 1.2rem; overflow-wrap: anywhere; }
#tiles { display: grid; grid-template-columns: repeat(auto-fill, minmax(9.5rem, 1fr)); gap: .6rem; margin: 0 0 1.4rem; }
.tile { border: 1px solid var(--line); border-radius: .5rem; padding: .5rem .7rem; }
.tile b { display: block; font-size: 1.25rem; font-variant-numeric: tabular-nums; }
.tile span { color: var(--faint); font-size: .85rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: right; padding: .3rem .6rem; border-bottom: 1px solid var(--line); white-space: nowrap; }
th { color: var(--faint); font-weight: 500; }
th:first-child, td:first-child, th:nth-child(2), td:nth-child(2), th:nth-child(3), td:nth-child(3) { text-align: left; }
.alive { color: var(--good); } .dead, .suspect { color: var(--bad); }
#stale { color: var(--bad); min-height: 1.4em; }
nav { margin-top: 1.2rem; color: var(--faint); }
</style>
</head>
<body>
<h1 id="name">kith</h1>
<p id="sub">connecting</p>
<p id="stale" role="status"></p>
<div id="tiles"></div>
<div class="wide"><table><thead><tr><th>name<th>address<th>state<th>step<th>loss<th>rtt ms<th>last exchange s</tr></thead>
<tbody id="members"></tbody></table></div>
<nav><a href="metrics">metrics</a> · <a href="status">status</a> · <a href="members">members</a> ·
<a href="healthz">health</a> · <a href="readyz">ready</a></nav>
<script>
"use strict";
const $ = id => document.getElementById(id);
const show = (v, digits) => v === null || v === undefined ? "–"
  : typeof v === "number" ? v.toLocaleString("en", {maximumFractionDigits: digits}) : String(v);
// Names come from other machines: they are set as text, never as markup.
const add = (parent, tag, text, cls) => {
  const e = document.createElement(tag); e.textContent = text; if (cls) e.className = cls; parent.append(e); return e; };
const tiles = [["epoch", "epoch", 2], ["step", "steps", 0], ["loss", "loss", 4], ["accuracy", "accuracy", 4],
  ["learning_rate", "learning rate", 5], ["steps_per_second", "steps / s", 1], ["members", "members", 0],
  ["exchanges_total", "exchanges", 0], ["exchanges_failed_total", "failed exchanges", 0],
  ["staleness_steps", "staleness, steps", 1], ["consensus_distance", "consensus distance", 6],
  ["last_checkpoint_step", "checkpoint at step", 0]];
const states = ["alive", "suspect", "dead", "left"];
function draw(status, members) {
  document.title = "kith · " + status.name;
  $("name").textContent = status.name + " · " + status.state;
  $("sub").textContent = "run " + status.run + " · node " + status.id + " · kith " + status.version;
  $("tiles").replaceChildren();
  for (const [key, label, digits] of tiles) {
    const tile = add($("tiles"), "div", "", "tile");
    add(tile, "b", show(status[key], digits)); add(tile, "span", label);
  }
  $("members").replaceChildren();
  for (const m of members) {
    const row = add($("members"), "tr", "");
    add(row, "td", m.name).title = m.id; add(row, "td", m.address);
    add(row, "td", m.state, states.includes(m.state) ? m.state : "");
    for (const [key, digits] of [["step", 0], ["loss", 4], ["rtt_ms", 2], ["last_exchange_seconds", 1]])
      add(row, "td", show(m[key], digits));
  }
}
async function json(path) { const r = await fetch(path, {cache: "no-store"}); return r.json(); }
let seen = null;
async function refresh() {
  try {
    const [status, members] = await Promise.all([json("status"), json("members")]);
    draw(status, members.members);
    seen = Date.now(); $("stale").textContent = "";
  } catch (e) {
    $("stale").textContent = seen === null ? "This node does not answer."
      : "This node has not answered for " + Math.round((Date.now() - seen) / 1000) + " s; what follows is its last word.";
  }
  setTimeout(refresh, document.hidden ? 10000 : 2000);
}
refresh();
</script>
</body>
</html>
)page";
}

}  // namespace kith::monitoring
