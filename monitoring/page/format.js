// How figures are written. Everything returns text; "–" stands for what is not known.
"use strict";
const kith = {};

kith.format = (() => {
  const unknown = v => v === null || v === undefined || Number.isNaN(v);
  const formats = new Map();
  const fixed = (v, digits) => {
    if (!formats.has(digits))
      formats.set(digits, new Intl.NumberFormat("en", {
        minimumFractionDigits: digits, maximumFractionDigits: digits,
      }));
    return formats.get(digits).format(v);
  };
  const number = (v, digits = 0) => unknown(v) ? "–" : fixed(v, digits);
  const significant = v => {
    if (unknown(v)) return "–";
    if (v === 0) return "0";
    const size = Math.floor(Math.log10(Math.abs(v)));
    return size < -4 ? v.toExponential(1) : fixed(v, Math.min(6, Math.max(0, 2 - size)));
  };
  const percent = (v, digits = 1) => unknown(v) ? "–" : fixed(100 * v, digits) + " %";
  const bytes = v => {
    if (unknown(v)) return "–";
    const units = ["B", "kB", "MB", "GB", "TB", "PB"];
    let unit = 0;
    while (v >= 999.5 && unit < units.length - 1) { v /= 1000; ++unit; }
    return fixed(v, unit > 0 && v < 99.5 ? 1 : 0) + " " + units[unit];
  };
  const duration = s => {
    if (unknown(s)) return "–";
    if (s < 99.5) return fixed(Math.max(0, s), 0) + " s";
    if (s < 5970) return fixed(s / 60, 0) + " min";
    if (s < 172800) return fixed(s / 3600, 1) + " h";
    return fixed(s / 86400, 1) + " d";
  };
  // Of day, for seconds since 1970.
  const two = v => String(v).padStart(2, "0");
  const clock = (wall, seconds = true) => {
    const d = new Date(wall * 1000);
    return two(d.getHours()) + ":" + two(d.getMinutes()) + (seconds ? ":" + two(d.getSeconds()) : "");
  };
  const day = wall => new Date(wall * 1000).toLocaleDateString("en", {month: "short", day: "numeric"});
  const set = (element, text) => {
    const same = element.firstChild?.data === text && element.childNodes.length <= 1;
    if (!same) element.textContent = text;
  };
  // Text only: names come from other machines.
  const make = (tag, className = "", text = "") => {
    const e = document.createElement(tag);
    if (className) e.className = className;
    if (text) e.textContent = text;
    return e;
  };
  return {unknown, number, significant, percent, bytes, duration, clock, day, set, make};
})();
