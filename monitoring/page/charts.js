// The curves and the picture of who exchanges with whom, drawn by Chart.js. A chart with new figures is
// redrawn in a frame of its own, and only while it can be seen.
"use strict";

kith.charts = (() => {
  const {unknown, make, set, clock, day, number, significant, percent, bytes} = kith.format;
  const names = new Intl.Collator("en", {numeric: true});
  const colors = ["own", "mean", "band", "third", "text", "faint", "line", "edge", "panel",
                  "good", "wait", "bad", "gone"];
  let palette = {};
  const charts = [];
  const waiting = new Set();
  let frame = 0;

  function readPalette() {
    const style = getComputedStyle(document.documentElement);
    for (const name of colors) palette[name] = style.getPropertyValue("--" + name).trim();
  }

  function redraw(chart) {
    chart.stale = true;
    if (chart.seen) waiting.add(chart);
    if (waiting.size > 0 && frame === 0) frame = requestAnimationFrame(drawNext);
  }
  function drawNext() {
    frame = 0;
    const [chart] = waiting;
    if (!chart) return;
    drawNow(chart);
    if (waiting.size > 0) frame = requestAnimationFrame(drawNext);
  }
  function drawNow(chart) {
    waiting.delete(chart);
    chart.stale = false;
    chart.draw();
  }
  const watcher = new IntersectionObserver(entries => {
    for (const entry of entries) {
      const chart = charts.find(c => c.plot === entry.target);
      chart.seen = entry.isIntersecting;
      if (chart.seen && chart.stale) redraw(chart);
    }
  }, {rootMargin: "80px"});

  // Without zeros that say nothing.
  const mark = text => text.replace(/\.0+(?=\D|$)/, "");

  function frameOf(id, title, legend) {
    const figure = document.getElementById(id);
    const caption = make("figcaption");
    const heading = make("h3", "", title);
    const list = make("ul", "legend");
    for (const [text, color, kind] of legend) {
      const item = make("li");
      const sign = make("i", "c-" + color + (kind ? " " + kind : ""));
      sign.setAttribute("aria-hidden", "true");
      item.append(sign, text);
      list.append(item);
    }
    caption.append(heading, list);
    const plot = make("div", "plot"), canvas = make("canvas"), empty = make("p", "empty");
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", title);
    empty.hidden = true;
    plot.append(canvas, empty);
    figure.append(caption, plot);
    return {figure, plot, canvas, empty, title, items: [...list.children]};
  }

  // Steps between marks on the axis of time that people can read.
  const steps = [5, 10, 20, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800,
                 604800];
  function timeTicks(axis) {
    const span = axis.max - axis.min, most = Math.max(2, Math.floor(axis.width / 76));
    const step = steps.find(s => span / s <= most) ?? steps.at(-1);
    const zone = new Date(axis.max * 1000).getTimezoneOffset() * 60;
    const ticks = [];
    const first = Math.ceil((axis.min - zone) / step) * step + zone;
    for (let t = first; t <= axis.max; t += step) ticks.push({value: t});
    axis.ticks = ticks;
  }
  const timeLabel = (v, span) => span < 300 ? clock(v) : span > 172800 ? day(v) : clock(v, false);

  // Marks of a logarithmic axis: as many of 1, 2, 5 in each decade as there is room for.
  function logTicks(axis) {
    const low = Math.floor(Math.log10(axis.min)), high = Math.ceil(Math.log10(axis.max));
    const decades = Math.log10(axis.max / axis.min);
    const parts = decades < 1.2 ? [1, 2, 3, 5, 7] : decades < 3 ? [1, 3] : [1];
    const ticks = [];
    for (let power = low; power <= high; ++power)
      for (const part of parts) {
        const value = part * 10 ** power;
        if (value >= axis.min * 0.999 && value <= axis.max * 1.001) ticks.push({value});
      }
    axis.ticks = ticks;
  }

  // A little room above and below, within what is possible.
  function widen(axis, most) {
    const room = 0.08 * (axis.max - axis.min);
    axis.min = Math.max(0, axis.min - room);
    axis.max = Math.min(most, axis.max + room);
  }

  function options(y, {log, fromZero, most}) {
    return {
      animation: false, parsing: false, normalized: true, responsive: true, maintainAspectRatio: false,
      interaction: {mode: "index", intersect: false, axis: "x"},
      elements: {
        point: {radius: 0, hitRadius: 6, hoverRadius: 3},
        line: {borderWidth: 1.8, borderJoinStyle: "round"},
      },
      plugins: {
        legend: {display: false},
        tooltip: {
          filter: item => !item.dataset.quiet, displayColors: true, boxWidth: 8, boxHeight: 8,
          callbacks: {
            title: items => items.length ? clock(items[0].parsed.x) : "",
            label: item => " " + item.dataset.label + "  " + y(item.parsed.y),
          },
        },
      },
      scales: {
        x: {
          type: "linear", afterBuildTicks: timeTicks, grid: {display: false, drawBorder: false},
          ticks: {maxRotation: 0, autoSkip: false, callback(v) { return timeLabel(v, this.max - this.min); }},
        },
        y: {
          type: log ? "logarithmic" : "linear", beginAtZero: fromZero,
          grid: {drawBorder: false, drawTicks: false},
          ...(most ? {afterDataLimits: axis => widen(axis, most)} : {}),
          ...(log ? {afterBuildTicks: logTicks} : {}),
          ticks: {maxTicksLimit: 6, padding: 6, callback: v => mark(y(v))},
          afterFit: axis => { axis.width = Math.max(axis.width, 44); },
        },
      },
    };
  }

  function paint(chart) {
    const o = chart.chart.options;
    for (const axis of Object.values(o.scales ?? {})) {
      if (axis.ticks) axis.ticks.color = palette.faint;
      if (axis.grid) axis.grid.color = palette.line;
    }
    Object.assign(o.plugins.tooltip, {
      backgroundColor: palette.panel, titleColor: palette.text, bodyColor: palette.text,
      borderColor: palette.edge, borderWidth: 1,
    });
    for (const set of chart.chart.data.datasets) {
      if (!set.color) continue;
      set.borderColor = set.quiet ? "transparent" : palette[set.color];
      set.backgroundColor = palette[set.color];
    }
  }

  // series: {label, color, value: (row, before) => number, dashed, stepped, band: [low, high]}
  class Curve {
    constructor(id, title, y, series, {log = false, fromZero = !log, top, most, empty = "nothing yet"} = {}) {
      const legend = series.map(s => [s.label, s.color, s.band ? "band" : s.dashed ? "dashed" : ""]);
      Object.assign(this, frameOf(id, title, legend), {y, series, nothing: empty});
      const datasets = [];
      for (const s of series) {
        const base = {label: s.label, color: s.color, data: [], borderDash: s.dashed ? [6, 4] : [],
                      stepped: s.stepped ? "before" : false, fill: false};
        const edge = {...base, quiet: true, borderWidth: 0};
        if (s.band) datasets.push({...edge, label: s.label + " high", fill: "+1"}, edge);
        else datasets.push(base);
      }
      const o = options(y, {log, fromZero, most});
      if (top !== undefined) o.scales.y.suggestedMax = top;
      this.chart = new Chart(this.canvas, {type: "line", data: {datasets}, options: o});
      charts.push(this);
      watcher.observe(this.plot);
    }
    // What is not known is a gap; a dashed line goes on over it.
    points(value, dashed) {
      const {rows, base} = this.input, points = [];
      for (let i = 0; i < rows.length; ++i) {
        const y = value(rows[i], rows[i - 1]), known = !unknown(y);
        if (known || !dashed) points.push({x: base + rows[i].at, y: known ? y : NaN});
      }
      return points;
    }
    draw() {
      const {from, to} = this.input;
      let any = false, index = 0;
      this.series.forEach((s, item) => {
        let here = false;
        for (const value of s.band ?? [s.value]) {
          const points = this.points(value, s.dashed);
          here ||= points.some(p => !Number.isNaN(p.y));
          this.chart.data.datasets[index++].data = points;
        }
        any ||= here;
        this.items[item].hidden = Boolean(s.dashed) && !here;  // few runs have it, and only at the end
      });
      const {x} = this.chart.options.scales;
      x.min = from; x.max = to;
      this.empty.hidden = any;
      set(this.empty, this.nothing);
      this.chart.update("none");
      this.canvas.setAttribute("aria-label", this.summary());
    }
    summary() {
      const parts = this.series.filter(s => s.value).map(s => {
        const all = this.input.rows.map((row, i, rows) => s.value(row, rows[i - 1]));
        const values = all.filter(v => Number.isFinite(v));
        if (values.length === 0) return s.label + " not known yet";
        const lowest = values.reduce((a, b) => Math.min(a, b));
        const highest = values.reduce((a, b) => Math.max(a, b));
        return `${s.label} now ${this.y(values.at(-1))}, at first ${this.y(values[0])}, ` +
          `between ${this.y(lowest)} and ${this.y(highest)}`;
      });
      return this.title + ": " + parts.join("; ");
    }
    show(input) { this.input = input; redraw(this); }
  }

  // This node in the middle, the members around it in the order of their names; a line to whom it exchanges
  // with, the stronger the more often lately. What looks alike is one dataset of constant style: styles by
  // point cost ten times as much.
  class Ring {
    constructor(id, title) {
      Object.assign(this, frameOf(id, title, [
        ["alive", "good", "dot"], ["suspect", "wait", "dot"], ["dead", "bad", "dot"], ["left", "gone", "dot"],
        ["exchanges", "own", ""],
      ]));
      this.kinds = [
        {color: "own", of: m => m.self},
        {color: "bad", of: m => m.state === "dead", style: "rectRot"},
        {color: "wait", of: m => m.state === "suspect"},
        {color: "gone", of: m => m.state === "left"},
        {color: "good", of: () => true},
      ];
      this.strengths = [
        {least: 0.66, alpha: "e6", width: 3},
        {least: 0.33, alpha: "80", width: 2},
        {least: 0, alpha: "33", width: 1},
      ];
      const points = this.kinds.map(kind => ({
        type: "scatter", data: [], color: kind.color, pointStyle: kind.style ?? "circle",
        borderWidth: 0, clip: 12,
      }));
      const edges = this.strengths.map(() => ({
        type: "line", data: [], pointRadius: 0, pointHitRadius: 0, pointHoverRadius: 0,
      }));
      this.placed = [];
      this.chart = new Chart(this.canvas, {
        type: "scatter", data: {datasets: [...points, ...edges]}, options: this.options(points.length),
        plugins: [{id: "names", afterDatasetsDraw: chart => this.write(chart)}],
      });
      charts.push(this);
      watcher.observe(this.plot);
    }
    // The first `kinds` datasets are members; the others are lines.
    options(kinds) {
      const axis = () => ({display: false, min: -1, max: 1, grid: {}});
      const tooltip = {
        filter: item => item.datasetIndex < kinds, displayColors: false,
        callbacks: {label: item => this.tell(item.raw.member)},
      };
      return {
        // Parsed, since lines go to and fro: Chart.js takes what it does not parse to be sorted.
        animation: false, responsive: true, maintainAspectRatio: false,
        layout: {padding: {top: 4, left: 4, right: 4, bottom: 22}},
        interaction: {mode: "nearest", intersect: true},
        plugins: {legend: {display: false}, tooltip},
        scales: {x: axis(), y: axis()},
      };
    }
    tell(m) {
      if (m.self) return m.name + ", this node";
      const count = number(m.started + m.answered) + " exchanges, " + number(m.failed) + " failed";
      return [m.name + ", " + m.state, count];
    }
    write(chart) {
      if (this.placed.length > 26) return;
      const {ctx} = chart, {x: across, y: up} = chart.scales, middle = across.getPixelForValue(0);
      ctx.save();
      ctx.font = "12px " + Chart.defaults.font.family;
      ctx.textBaseline = "middle";
      for (const {member: m, ...at} of this.placed) {
        const x = across.getPixelForValue(at.x), y = up.getPixelForValue(at.y);
        const name = m.name.length > 18 ? m.name.slice(0, 17) + "…" : m.name;
        const centred = m.self || Math.abs(x - middle) < 40;
        ctx.textAlign = centred ? "center" : x < middle ? "right" : "left";
        const side = centred ? 0 : x < middle ? -12 : 12;
        const line = !centred ? y - 7 : m.self || y > chart.height / 2 ? y + 18 : y - 30;
        ctx.fillStyle = palette.text;
        ctx.fillText(name, x + side, line);
        if (m.self) continue;
        ctx.fillStyle = palette.faint;
        ctx.fillText(m.state === "alive" ? number(m.started + m.answered) : m.state, x + side, line + 14);
      }
      ctx.restore();
    }
    draw() {
      const {members, recent} = this.input;
      const others = members.filter(m => !m.self).sort((a, b) => names.compare(a.name, b.name));
      const shape = Math.max(1, this.plot.clientWidth / Math.max(1, this.plot.clientHeight));
      const dense = others.length > 25;
      const wide = dense ? Math.min(1, 1.0 / shape + 0.25) * 0.93 : 0.62, high = 0.93;
      this.chart.options.layout.padding = dense ? 4 : {top: 34, bottom: 24};
      this.placed = others.map((member, i) => {
        const angle = 2 * Math.PI * i / others.length;
        return {member, x: wide * Math.sin(angle), y: high * Math.cos(angle)};
      });
      const most = Math.max(1, ...others.map(recent));
      const lines = this.strengths.map(() => []);
      for (const at of this.placed) {
        if (at.member.started + at.member.answered === 0) continue;
        const strength = Math.sqrt(recent(at.member) / most);
        const line = lines[this.strengths.findIndex(s => strength >= s.least)];
        line.push({x: 0, y: 0}, at, {x: null, y: null});
      }
      for (const member of members) if (member.self) this.placed.push({member, x: 0, y: 0});
      const {datasets} = this.chart.data, dots = this.kinds.map(() => []), many = this.placed.length > 60;
      for (const at of this.placed) dots[this.kinds.findIndex(kind => kind.of(at.member))].push(at);
      this.kinds.forEach((kind, i) => {
        const radius = kind.color === "own" ? 9 : !many ? 7 : kind.color === "good" ? 3.5 : 5.5;
        Object.assign(datasets[i], {data: dots[i], pointRadius: radius, pointHoverRadius: radius + 1.5});
      });
      this.strengths.forEach((s, i) => Object.assign(datasets[dots.length + i], {
        data: lines[i], borderColor: palette.own + s.alpha, borderWidth: many ? s.width / 2.5 : s.width,
      }));
      this.empty.hidden = others.length > 0;
      set(this.empty, "no other member is known");
      this.chart.update("none");
      this.canvas.setAttribute("aria-label", this.summary(others));
    }
    summary(others) {
      const partners = others.filter(m => m.started + m.answered > 0);
      const top = [...partners].sort((a, b) => b.started + b.answered - a.started - a.answered).slice(0, 5);
      const most = top.map(m => `${m.name} (${number(m.started + m.answered)})`).join(", ") || "nobody yet";
      return `${this.title}: ${partners.length} of ${others.length} other members; most with ${most}. ` +
        "The table of members has all.";
    }
    // Hundreds of lines cost a frame: they are drawn anew when somebody's state has changed, else now and
    // then.
    show(input) {
      this.input = input;
      const states = input.members.map(m => m.id + m.state).join(), many = input.members.length > 60;
      if (many && states === this.states && performance.now() - this.drawnAt < 10000) return;
      this.states = states;
      this.drawnAt = performance.now();
      redraw(this);
    }
  }

  const rate = field => (row, before) => {
    if (!before || row.at <= before.at) return NaN;
    return Math.max(0, (row[field] - before[field]) / (row.at - before.at));
  };
  let all;
  function build() {
    readPalette();
    Chart.defaults.font.family = getComputedStyle(document.body).fontFamily;
    Chart.defaults.font.size = 11;
    const cluster = name => [
      {label: "this node", color: "own", value: r => r[name]},
      {label: "mean of members", color: "mean", value: r => r[name + "_mean"]},
      {label: "lowest to highest", color: "band", band: [r => r[name + "_high"], r => r[name + "_low"]]},
    ];
    const loss = cluster("loss"), accuracy = cluster("accuracy").map(s => ({...s, stepped: true}));
    accuracy.push({label: "averaged model", color: "third", dashed: true, value: r => r.accuracy_averaged});
    all = {
      loss: new Curve("loss", "Training loss", significant, loss),
      accuracy: new Curve("accuracy", "Accuracy on the test set", v => percent(v), accuracy,
        {fromZero: false, most: 1, empty: "not evaluated yet: the first time is after an epoch"}),
      pairs: new Ring("pairs", "Who this node exchanges with"),
      agreement: new Curve("agreement", "Consensus distance", significant, [
        {label: "relative", color: "own", value: r => r.consensus_distance > 0 ? r.consensus_distance : NaN},
      ], {log: true, empty: "no exchanges yet"}),
      staleness: new Curve("staleness", "Staleness", v => number(v, v < 10 && v % 1 ? 1 : 0), [
        {label: "steps, median", color: "own", value: r => r.staleness_steps},
      ], {top: 2, empty: "no exchanges yet"}),
      pace: new Curve("pace", "Per second", v => significant(v), [
        {label: "exchanges", color: "own", value: rate("exchanges")},
        {label: "steps", color: "mean", value: rate("steps")},
        {label: "failed", color: "bad", value: rate("exchanges_failed")},
      ]),
      traffic: new Curve("traffic", "Bytes per second", bytes, [
        {label: "sent", color: "own", value: rate("bytes_sent")},
        {label: "received", color: "mean", value: rate("bytes_received")},
      ]),
    };
    charts.forEach(paint);
  }
  function showCurves(input) {
    for (const [name, chart] of Object.entries(all)) if (name !== "pairs") chart.show(input);
  }
  function showPairs(input) { all.pairs.show(input); }
  // All at once, seen or not: a page in two themes is worse than one long frame.
  function repaint() {
    readPalette();
    charts.forEach(chart => { paint(chart); if (chart.input) drawNow(chart); });
  }
  return {build, showCurves, showPairs, repaint, list: charts};
})();
