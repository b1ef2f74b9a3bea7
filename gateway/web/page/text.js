"use strict";
// Numbers, times and texts as the page shows them, and elements that hold them.

const byId = (id) => document.getElementById(id);
const count = new Intl.NumberFormat("en");
const short = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

function amount(number) { return number < 100000 ? count.format(number) : short.format(number); }
function rate(number) { return number === null ? "…" : `${number < 10 ? Math.round(number * 10) / 10 : amount(Math.round(number))}/s`; }
function size(bytes) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let step = 0;
  while (bytes >= 1024 && step < units.length - 1) { bytes /= 1024; step += 1; }
  return `${step && bytes < 10 ? bytes.toFixed(1) : Math.round(bytes)} ${units[step]}`;
}
function age(seconds) {
  if (seconds === null) return "";
  if (seconds < 100) return `${seconds < 10 ? Math.round(seconds * 10) / 10 : Math.round(seconds)} s`;
  if (seconds < 6000) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172800) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86400)} d`;
}
function latency(seconds) { return seconds === null ? "" : seconds < 1 ? `${(seconds * 1000).toFixed(seconds < 0.01 ? 1 : 0)} ms` : age(seconds); }
function clock(seconds) { return new Date(seconds * 1000).toISOString().slice(0, 19).replace("T", " "); } // UTC
function tally(counts) { return Object.entries(counts).map(([word, number]) => `${word} ${amount(number)}`).join(", "); }
function words(text) { return text.replaceAll("_", " "); }

function put(element, text) { if (element.textContent !== text) element.textContent = text; }
function make(tag, text = "", kind = "") {
  const element = document.createElement(tag);
  if (text) element.textContent = text;
  if (kind) element.className = kind;
  return element;
}
// A command breaks between its words only, never after the hyphens of an option.
function commandLine(text) {
  const code = make("code");
  text.split(" ").forEach((word, index) => code.append(index ? " " : "", make("span", word, "whole")));
  return code;
}
