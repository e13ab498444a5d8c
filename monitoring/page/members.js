// The table of members. Rows are kept from one look to the next; only cells whose text has changed are
// touched, and rows move only when their order has changed.
"use strict";

kith.members = (() => {
  const {make, set, number, significant, percent, duration} = kith.format;
  const states = ["alive", "suspect", "dead", "left"];
  const exchanges = m => m.started + m.answered;
  const columns = [
    {key: "name", title: "Name", text: true, share: 16},
    {key: "state", title: "State", text: true, share: 8, rank: m => states.indexOf(m.state)},
    {key: "doing", title: "Doing", text: true, share: 8, wide: "w2"},
    {key: "step", title: "Step", share: 9, show: m => number(m.step)},
    {key: "steps_per_second", title: "Steps/s", share: 8, wide: "w2",
     show: m => number(m.steps_per_second, 1)},
    {key: "loss", title: "Loss", share: 9, show: m => significant(m.loss)},
    {key: "accuracy", title: "Accuracy", share: 9, wide: "w2", show: m => percent(m.accuracy)},
    {key: "rtt_ms", title: "RTT ms", share: 8, wide: "w3", help: "Round trip of the latest probe",
     show: m => m.self ? "–" : number(m.rtt_ms, 2)},
    {key: "exchanges", title: "Exchanges", share: 13,
     help: "Exchanges with this node that ended in averaging",
     show: m => m.self ? "–" : number(exchanges(m)), rank: exchanges},
    {key: "staleness_steps", title: "Staleness", share: 9, wide: "w3",
     help: "Mean staleness in steps of exchanges that this node started",
     show: m => number(m.staleness_steps, 1)},
    {key: "exchange_age", title: "Last", share: 6, wide: "w2", help: "Since the last exchange with this node",
     show: m => m.exchange_age === null ? "–" : duration(m.exchange_age)},
    {key: "address", title: "Address", text: true, share: 14, wide: "w3"},
  ];
  const rows = new Map();
  const names = new Intl.Collator("en", {numeric: true});
  let members = [], sort = {key: "name", down: false}, state = "all", words = "";
  let body, filters = {};

  function build() {
    body = document.getElementById("members");
    const head = document.getElementById("columns");
    for (const c of columns) {
      const cell = make("th", [c.text ? "text" : "", c.wide ?? ""].join(" ").trim());
      cell.scope = "col";
      cell.style.width = c.share + "%";
      const button = make("button", "", c.title);
      button.type = "button";
      if (c.help) button.title = c.help;
      button.addEventListener("click", () => {
        sort = {key: c.key, down: sort.key === c.key ? !sort.down : !c.text};
        arrange();
      });
      cell.append(button);
      head.append(cell);
      c.head = cell;
    }
    const bar = document.getElementById("filters");
    for (const s of ["all", ...states]) {
      const button = make("button");
      button.type = "button";
      button.addEventListener("click", () => { state = s; arrange(); });
      bar.append(button);
      filters[s] = button;
    }
    document.getElementById("find").addEventListener("input", event => {
      words = event.target.value.trim().toLowerCase();
      arrange();
    });
  }

  function makeRow(m) {
    const tr = make("tr"), cells = {};
    for (const c of columns) {
      const classes = [c.text ? "text" : "", c.wide ?? "", c.key === "state" ? "s" : ""];
      const cell = make(c.key === "name" ? "th" : "td", classes.join(" ").trim());
      if (c.key === "name") cell.scope = "row";
      cells[c.key] = cell;
      tr.append(cell);
    }
    const row = {tr, cells, shown: {}};
    row.name = linkable(m) ? make("a") : make("bdi");
    cells.name.append(row.name);
    row.mark = make("span", "mark");
    cells.state.append(row.mark);
    row.count = make("span");
    cells.exchanges.append(row.count);
    if (!m.self) {
      const share = make("span", "share");
      row.bar = make("i");
      share.append(row.bar);
      cells.exchanges.append(share);
    }
    return row;
  }

  // Another member's page, where this browser can reach it: an address of loopback is the other machine's
  // own.
  const loopback = host => /^(127\.|localhost$|\[?::1\]?$)/.test(host);
  function linkable(m) {
    const [, host] = /^([A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\]):\d{1,5}$/.exec(m.http ?? "") ?? [];
    if (host === undefined || m.self || /^(0\.0\.0\.0|\[::\])$/.test(host)) return false;
    return !loopback(host) || loopback(location.hostname);
  }

  function put(row, key, value, change) {
    if (row.shown[key] === value) return;
    row.shown[key] = value;
    change(value);
  }

  function update(m, most) {
    let row = rows.get(m.id);
    if (row && (row.name.tagName === "A") !== linkable(m)) { row.tr.remove(); row = null; }
    if (!row) rows.set(m.id, row = makeRow(m));
    put(row, "name", m.name, v => {
      row.name.textContent = v || m.id;
      row.cells.name.title = v + "  " + m.id;
    });
    if (row.name.tagName === "A") put(row, "http", m.http, v => { row.name.href = "http://" + v + "/"; });
    put(row, "state", m.state, v => {
      row.mark.textContent = v;
      row.mark.className = "mark " + (states.includes(v) ? v : "");
      row.tr.classList.toggle("gone", v === "dead" || v === "left");
    });
    put(row, "self", m.self, v => row.tr.classList.toggle("self", v));
    for (const c of columns) {
      if (c.key === "name" || c.key === "state") continue;
      const target = c.key === "exchanges" ? row.count : row.cells[c.key];
      put(row, c.key, c.show ? c.show(m) : m[c.key], v => {
        target.textContent = v;
        if (c.key === "address") target.title = v;
      });
    }
    const share = Math.round(100 * exchanges(m) / most) / 100;
    if (row.bar) put(row, "share", share, v => { row.bar.style.transform = `scaleX(${v})`; });
  }

  function order(a, b) {
    const c = columns.find(c => c.key === sort.key);
    const of = c.rank ?? (m => m[sort.key]);
    const x = of(a), y = of(b);
    let by = 0;
    if (c.text && !c.rank) by = names.compare(x, y);
    else if (x === null || y === null) return x === y ? names.compare(a.name, b.name) : x === null ? 1 : -1;
    else by = x - y;
    if (sort.down) by = -by;
    return by || names.compare(a.name, b.name) || (a.id < b.id ? -1 : 1);
  }

  const found = m => !words || m.name.toLowerCase().includes(words) ||
    m.address.toLowerCase().includes(words) || m.id.startsWith(words);
  function arrange() {
    const counts = {all: members.length};
    for (const m of members) counts[m.state] = (counts[m.state] ?? 0) + 1;
    for (const [s, button] of Object.entries(filters)) {
      set(button, `${s} ${number(counts[s] ?? 0)}`);
      button.setAttribute("aria-pressed", String(state === s));
      button.hidden = s !== "all" && s !== state && !counts[s];
    }
    for (const c of columns) {
      if (c.key === sort.key) c.head.setAttribute("aria-sort", sort.down ? "descending" : "ascending");
      else c.head.removeAttribute("aria-sort");
    }
    const wanted = members.filter(m => (state === "all" || m.state === state) && found(m)).sort(order);
    let at = body.firstChild;
    for (const m of wanted) {
      const {tr} = rows.get(m.id);
      if (tr === at) at = at.nextSibling;
      else body.insertBefore(tr, at);
    }
    while (at) { const next = at.nextSibling; at.remove(); at = next; }
  }

  function show(list) {
    members = list;
    const most = Math.max(1, ...list.map(exchanges));
    const known = new Set();
    for (const m of list) { known.add(m.id); update(m, most); }
    for (const [id, row] of rows) if (!known.has(id)) { row.tr.remove(); rows.delete(id); }
    arrange();
  }
  return {build, show};
})();
