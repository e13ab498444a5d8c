// Asks the node for what is new, keeps what it has seen, and hands it to the parts of the page.
"use strict";

(() => {
  const {make, set, number, significant, percent, bytes, duration, clock, day} = kith.format;
  const $ = id => document.getElementById(id);
  const hiddenMs = 15000, failedMostMs = 30000, patienceMs = 10000, manyMembers = 64, eventsMost = 200;
  const hour = 3600;

  let span = 3600;                   // seconds of the curves, or "run"
  let boot = "", step = 0, rows = [], latest = null, lastEvent = 0, base = 0;
  let members = [], before = new Map(), pairsAt = [];
  let failures = 0, answeredAt = 0, timer = 0, asking = false;
  let lastState = "", ending = false, averaged = null;
  const kept = () => span === "run" ? "run" : "hour";

  // ---- figures ----------------------------------------------------------------------------------
  const figures = [
    ["Loss", n => significant(n.loss),
      () => latest && latest.loss_mean !== null ? "mean of all " + significant(latest.loss_mean) : ""],
    ["Accuracy", n => percent(n.accuracy), accuracyNote],
    ["Steps", n => number(n.step), n => number(n.steps_per_second, 1) + " a second"],
    ["Members alive", () => number(count("alive")), missingNote, () => count("dead") > 0],
    ["Exchanges", n => number(n.exchanges), failedNote],
    ["Staleness", n => n.staleness_steps === null ? "–" : inSteps(n.staleness_steps),
      () => "median of recent"],
    ["Consensus", n => significant(n.consensus_distance), () => "relative distance"],
    ["Sent", n => bytes(n.bytes_sent), () => perSecond("bytes_sent")],
    ["Received", n => bytes(n.bytes_received), () => perSecond("bytes_received")],
    ["Checkpoint at step", n => n.checkpoint_step === null ? "–" : number(n.checkpoint_step), checkpointNote,
      n => n.checkpoint_errors > 0],
  ];
  let nodeNow = 0;
  const now = () => nodeNow;
  const count = state => members.filter(m => m.state === state).length;
  const inSteps = v => number(v, 0) + (v === 1 ? " step" : " steps");
  function accuracyNote(n) {
    if (n.accuracy_averaged !== null) return "averaged model " + percent(n.accuracy_averaged);
    return latest && latest.accuracy_mean !== null ? "mean of all " + percent(latest.accuracy_mean) : "";
  }
  function missingNote() {
    const states = ["suspect", "dead", "left"].filter(state => count(state) > 0);
    return states.map(state => `${count(state)} ${state}`).join(", ") || "nobody missing";
  }
  function failedNote(n) {
    const all = n.exchanges + n.exchanges_failed;
    return all > 0 ? percent(n.exchanges_failed / all) + " failed" : "";
  }
  function checkpointNote(n) {
    if (n.checkpoint_errors > 0) return number(n.checkpoint_errors) + " could not be written";
    return n.checkpoint_at === null ? "none yet" : duration(now() - n.checkpoint_at) + " ago";
  }
  function rate(field) {
    const ago = latest && rows.findLast(r => latest.at - r.at >= 5);
    return ago ? Math.max(0, (latest[field] - ago[field]) / (latest.at - ago.at)) : 0;
  }
  const perSecond = field => bytes(rate(field)) + " a second";
  function buildFigures() {
    for (const figure of figures) {
      const box = make("div"), value = make("dd"), note = make("dd");
      box.append(make("dt", "", figure[0]), value, note);
      $("figures").append(box);
      figure.push(value, note);
    }
  }
  function showFigures(node) {
    for (const f of figures) {
      const value = f.at(-2), note = f.at(-1), isBad = f.length === 6 && f[3](node);
      set(value, f[1](node));
      set(note, f[2](node));
      value.classList.toggle("bad", isBad);
    }
  }

  // ---- header -----------------------------------------------------------------------------------
  const moods = {
    training: "good", finishing: "good", complete: "good", waiting: "wait", joining: "wait", leaving: "wait",
  };
  function showNode(node) {
    document.title = `${node.name} · ${node.state} · kith`;
    set($("name"), node.name);
    set($("state"), node.state);
    $("state").className = "pill " + (node.healthy ? moods[node.state] ?? "" : "bad");
    $("state").hidden = false;
    set($("about"), `run ${node.run} · cluster ${node.cluster} · ${node.method} · node ${node.id} · ` +
      `kith ${node.version}`);
    const known = node.length_samples !== null && node.length_samples > 0;
    const done = known ? Math.min(1, node.progress_samples / node.length_samples) : 0;
    showProgress(node, known, done);
    showTrouble(node);
    const left = known ? (node.length_samples - node.progress_samples) / rate("progress_samples") : Infinity;
    ending = left < 10 || node.state === "finishing" || node.state === "complete";
    const over = done >= 1 && ["finishing", "complete", "leaving"].includes(node.state);
    lastState = over ? "complete" : node.state;
  }
  function showProgress(node, known, done) {
    const bar = $("progress");
    bar.hidden = !known;
    if (known) bar.value = done;
    const epoch = node.epoch === null ? "" : "epoch " + number(node.epoch, 2);
    const epochs = Math.round(100 * node.epoch * node.length_samples / node.progress_samples) / 100;
    const whole = known && node.progress_samples > 0 ? " of " + significant(epochs) : "";
    const samples = ` · ${number(node.progress_samples)} samples by all members`;
    set($("progress-text"), epoch + whole + samples + (known ? ` · ${percent(done, 0)}` : ""));
  }
  function showTrouble(node) {
    const troubles = [];
    if (!node.healthy) troubles.push("Training is held: loss or parameters are not finite.");
    if (node.isolated) troubles.push("No member answers this node; it goes on alone.");
    if (node.waiting_for) troubles.push(node.waiting_for[0].toUpperCase() + node.waiting_for.slice(1) + ".");
    if (node.trouble) troubles.push("Last error: " + node.trouble);
    $("trouble").hidden = troubles.length === 0;
    set($("trouble"), troubles.join(" "));
  }
  function link(mood, text) {
    $("link").className = "link " + mood;
    set($("link"), text);
  }

  // ---- members and exchanges --------------------------------------------------------------------
  function readMembers(answer) {
    const {fields, rows} = answer.members;
    members = rows.map(row => {
      const m = {};
      fields.forEach((name, i) => { m[name] = row[i]; });
      m.self = m.id === answer.node.id;
      m.exchange_age = m.exchange_at === null || m.self ? null : Math.max(0, answer.now - m.exchange_at);
      return m;
    });
    tellChanges();
    // Exchanges of the last half minute, for the strength of lines.
    pairsAt.push({at: answer.now, counts: new Map(members.map(m => [m.id, m.started + m.answered]))});
    while (pairsAt.length > 2 && pairsAt[1].at <= answer.now - 30) pairsAt.shift();
    const old = pairsAt[0].counts, single = pairsAt.length === 1;
    kith.charts.showPairs({members, recent: m => m.started + m.answered - (single ? 0 : old.get(m.id) ?? 0)});
    kith.members.show(members);
    showMembersNote(answer.members);
  }
  function showMembersNote({known, neighbours}) {
    const notes = ["Exchanges are this node's own: each node counts only those that it takes part in."];
    if (neighbours !== null)
      notes.unshift(`This node keeps links with ${number(neighbours)} neighbours; ` +
        "what it shows of others is relayed.");
    if (known > members.length)
      notes.unshift(`${number(members.length)} of ${number(known)} members are shown: ` +
        "those exchanged with and those in trouble first.");
    set($("members-note"), notes.join(" "));
  }
  function tellChanges() {
    const told = [];
    for (const m of members)
      if (before.has(m.id) && before.get(m.id) !== m.state) told.push(`${m.name} is ${m.state}`);
    if (before.size > 0) {
      const joined = members.filter(m => !before.has(m.id));
      if (joined.length === 1) told.push(`${joined[0].name} has joined`);
      if (joined.length > 1) told.push(`${joined.length} members have joined`);
    }
    before = new Map(members.map(m => [m.id, m.state]));
    if (told.length === 0) return;
    set($("announce"), told.length > 4 ? `${told.length} members have changed` : told.join(", "));
  }

  // ---- events -----------------------------------------------------------------------------------
  const eventMoods = {
    dead: "bad", isolated: "bad", suspect: "wait", joined: "good", alive: "good", left: "gone",
    adoption: "own", checkpoint: "gone", evaluated: "own", final: "good", state: "own", data: "gone",
  };
  function moodOf(e) {
    if (e.level === "error") return "bad";
    return e.level === "warn" && e.kind !== "dead" ? "wait" : eventMoods[e.kind] ?? "gone";
  }
  function eventTime(wall) {
    const time = make("time");
    time.dateTime = new Date(wall * 1000).toISOString();
    time.textContent = clock(wall);
    time.title = day(wall) + " " + clock(wall);
    return time;
  }
  function eventText(e) {
    const text = make("div");
    text.append(make("span", "kind c-" + moodOf(e), e.kind || e.level));
    const told = e.text.startsWith("member ") ? e.fields.name : "";
    if (told) text.append(make("bdi", "", told), " ");
    const said = told ? e.text.slice("member ".length) : e.text;
    if (said !== e.kind) text.append(said);
    const hidden = told ? ["name", "id", "path"] : ["id", "path"];
    const rest = Object.entries(e.fields).filter(([k]) => !hidden.includes(k))
      .map(([k, v]) => `${k} ${/^-?\d+\.\d+$/.test(v) ? significant(Number(v)) : v}`).join(", ");
    if (rest) text.append(" ", make("span", "with", rest));
    if (e.times > 1) text.append(" ", make("span", "with", `(${number(e.times)} times)`));
    return text;
  }
  function showEvents(events) {
    const list = $("events");
    for (const e of events.events) {
      const item = make("li");
      item.append(eventTime(base + e.at), eventText(e));
      // The same again takes the place of the one before.
      if (e.times > 1 && list.firstChild?.text === e.text) list.firstChild.remove();
      item.text = e.text;
      list.prepend(item);
    }
    while (list.childElementCount > eventsMost) list.lastChild.remove();
    if (list.childElementCount === 0) list.append(make("li", "with", "nothing yet"));
    lastEvent = events.last;
  }

  // ---- history ----------------------------------------------------------------------------------
  const asRow = (fields, row) => {
    const out = {};
    fields.forEach((name, i) => { out[name] = row[i]; });
    return out;
  };
  function readHistory(history) {
    if (history.step_seconds !== step) { rows = []; step = history.step_seconds; }
    for (const row of history.rows) rows.push(asRow(history.fields, row));
    latest = history.latest && asRow(history.fields, history.latest);
    const oldest = span === "run" ? -Infinity : (latest?.at ?? 0) - hour - 10;
    let gone = 0;
    while (gone < rows.length && rows[gone].at < oldest) ++gone;
    if (gone > 0) rows = rows.slice(gone);
  }
  function showCurves() {
    if (!latest) return;
    const length = span === "run" ? Infinity : span;
    const from = Math.max(latest.at - length, Math.min(rows[0]?.at ?? latest.at, latest.at - 30));
    let shown = rows.filter(r => r.at >= from - step);
    if (shown.length === 0 || shown.at(-1).at < latest.at) shown = [...shown, latest];
    // Known only at the end, and the level to compare with.
    if (averaged !== null) shown = shown.map(r => ({...r, accuracy_averaged: averaged}));
    kith.charts.showCurves({rows: shown, base, from: base + from, to: base + latest.at});
  }

  // ---- asking -----------------------------------------------------------------------------------
  function forget(answer) {
    boot = answer.boot;
    rows = []; step = 0; lastEvent = 0; pairsAt = [];
    $("events").replaceChildren();
  }
  function take(answer) {
    if (answer.boot !== boot) { forget(answer); base = answer.wall - answer.now; }
    nodeNow = answer.now;
    averaged = answer.node.accuracy_averaged;
    readHistory(answer.history);
    readMembers(answer);
    showNode(answer.node);
    showFigures(answer.node);
    showCurves();
    if (answer.events.events.length > 0 || lastEvent === 0) showEvents(answer.events);
  }
  async function look() {
    if (asking) return;
    asking = true;
    clearTimeout(timer);
    const asked = kept();
    const query = new URLSearchParams({span: asked});
    if (boot) {
      query.set("boot", boot);
      query.set("event", lastEvent);
      if (rows.length > 0) { query.set("after", rows.at(-1).at); query.set("step", step); }
    }
    try {
      const signal = AbortSignal.timeout(patienceMs);
      const reply = await fetch("live?" + query, {cache: "no-store", signal});
      if (!reply.ok) throw {status: reply.status};
      const answer = await reply.json();
      answeredAt = Date.now();
      failures = 0;
      if (asked === kept()) take(answer);
      link("good", "live");
    } catch (error) {
      if (!expected(error)) console.error(error);
      ++failures;
      link(lastState === "complete" || lastState === "leaving" ? "done" : "bad", explain(error));
    }
    asking = false;
    schedule();
  }
  // No answer, an answer that says no, or none in time; anything else is a defect of this page.
  const expected = error => error instanceof TypeError || error.status !== undefined ||
    error.name === "TimeoutError" || error.name === "AbortError";
  function explain(error) {
    const silence = duration((Date.now() - answeredAt) / 1000);
    const since = answeredAt === 0 ? "" : `, for ${silence}; this is its last word`;
    if (error.status === 503) return "the node is starting, or has too many pages open; asking again" + since;
    if (error.status !== undefined) return `the node answers with error ${error.status}` + since;
    if (lastState === "complete" || lastState === "finishing")
      return "the run is complete and this node has ended";
    if (lastState === "leaving") return "this node has left";
    return "the node does not answer" + since;
  }
  function schedule() {
    let wait = members.length > manyMembers ? 4000 : 2000;
    if (ending) wait = 500;  // an end takes a second or two
    if (document.hidden) wait = hiddenMs;
    const patient = Math.min(failedMostMs, wait * 1.6 ** Math.min(failures, 8));
    timer = setTimeout(look, failures > 0 ? patient * (0.75 + Math.random() / 2) : wait);
  }

  // ---- controls ---------------------------------------------------------------------------------
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const themes = ["auto", "light", "dark"];
  let theme = "auto";
  try { theme = localStorage.getItem("kith-theme") ?? "auto"; } catch { /* kept for this visit only */ }
  if (!themes.includes(theme)) theme = "auto";
  // The rule of page.css with the dark colours: what its condition is, is chosen here.
  const darkColors = [...document.styleSheets].flatMap(sheet => [...sheet.cssRules])
    .find(rule => rule.media?.mediaText === dark.media);
  function applyTheme() {
    const isDark = theme === "auto" ? dark.matches : theme === "dark";
    darkColors.media.mediaText = isDark ? "all" : "not all";
    document.documentElement.dataset.theme = isDark ? "dark" : "light";
    set($("theme"), "Theme: " + theme);
    kith.charts.repaint();
  }
  $("theme").addEventListener("click", () => {
    theme = themes[(themes.indexOf(theme) + 1) % themes.length];
    try { localStorage.setItem("kith-theme", theme); } catch { /* likewise */ }
    applyTheme();
  });
  dark.addEventListener("change", applyTheme);
  for (const button of document.querySelectorAll("[data-span]")) {
    button.addEventListener("click", () => {
      const had = kept();
      span = button.dataset.span === "run" ? "run" : Number(button.dataset.span);
      for (const other of document.querySelectorAll("[data-span]"))
        other.setAttribute("aria-pressed", String(other === button));
      if (kept() === had) return showCurves();
      rows = []; step = 0;
      look();
    });
  }
  document.addEventListener("visibilitychange", () => { if (!document.hidden) look(); });

  kith.look = look;
  kith.charts.build();
  kith.members.build();
  buildFigures();
  applyTheme();
  look();
})();
