"""The style sheet of the page."""

from __future__ import annotations

from typing import Final

_COLOURS: Final = """
:root {
  color-scheme: light dark;
  --paper: #ffffff; --card: #f7f8fa; --ink: #1b2430; --quiet: #5b6676; --rule: #dde2e8; --faint: #8894a4;
  --accent: #1f5fa8; --limit: #b0413e;
  --seed: #1b2430; --random: #9aa4b1; --crossed: #56b4e9; --mutated: #e69f00; --refined: #009e73; --other: #b8a9c9;
  --illegal: #c9d0d9; --compile: #ddb94a; --crash: #cc6677; --timeout: #3f3a9b; --memory: #44aa99;
  --out-of-bounds: #aa4499; --wrong: #882255; --device: #8a8a2c; --lost: #88ccee; --numerics: #b8860b;
  --slow: #6a8f3c;
}
"""

_DARK: Final = """
@media screen and (prefers-color-scheme: dark) {
  :root {
    --paper: #12161c; --card: #1a2028; --ink: #e4e9f0; --quiet: #9aa6b5; --rule: #2c3541; --faint: #74818f;
    --accent: #6cb0f5; --limit: #f08a80;
    --seed: #f2f5f9; --random: #6d7886; --crossed: #56b4e9; --mutated: #f0b43c; --refined: #2fc59a; --other: #8d7fa0;
    --illegal: #4a5563; --compile: #d9bd5c; --crash: #e08291; --timeout: #8f8af0; --memory: #5cc4b2;
    --out-of-bounds: #d275c2; --wrong: #c85a8f; --device: #bcbc5a; --lost: #88ccee; --numerics: #e0b040;
    --slow: #a3c76b;
  }
}
"""

_TEXT: Final = """
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 15px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
main { max-width: 1160px; margin: 0 auto; padding: 44px 28px 96px; }
h1 { font-size: 30px; line-height: 1.2; font-weight: 650; letter-spacing: -0.015em; margin: 0 0 4px; }
h2 { font-size: 20px; font-weight: 620; margin: 52px 0 12px; }
h3 { font-size: 19px; font-weight: 620; margin: 0; overflow-wrap: anywhere; }
h4 { font-size: 14px; font-weight: 620; margin: 0 0 10px; }
h5 { font-size: 12px; font-weight: 500; margin: 6px 0 0; color: var(--quiet); overflow-wrap: anywhere; }
p { margin: 0 0 12px; }
a { color: var(--accent); text-decoration: none; }
a:hover { text-decoration: underline; }
code, pre { font: 12.5px/1.5 ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; }
.lead { color: var(--quiet); overflow-wrap: anywhere; }
.note { color: var(--quiet); font-size: 13px; line-height: 1.5; margin: 10px 0 0; max-width: 68ch;
  overflow-wrap: anywhere; }
small { color: var(--quiet); font-size: 12px; font-weight: 400; }
.accent { color: var(--accent); }
"""

_PARTS: Final = """
.tiles { display: flex; flex-wrap: wrap; gap: 12px 44px; margin: 26px 0 18px; }
.tiles div { display: flex; flex-direction: column; line-height: 1.35; }
.tiles b { font-size: 28px; font-weight: 620; letter-spacing: -0.01em; font-variant-numeric: tabular-nums; }
.tiles span { font-size: 13px; }
.facts { display: grid; grid-template-columns: max-content 1fr; gap: 4px 22px; margin: 16px 0; font-size: 14px; }
.facts dt { color: var(--quiet); }
.facts dd { margin: 0; overflow-wrap: anywhere; white-space: pre-line; }
.legend { display: flex; flex-wrap: wrap; gap: 2px 16px; list-style: none; margin: 0 0 8px; padding: 0;
  font-size: 12.5px; color: var(--quiet); }
.legend:empty { display: none; }
.legend li { overflow-wrap: anywhere; }
.swatch { display: inline-block; width: 9px; height: 9px; border-radius: 50%; background: var(--colour);
  margin-right: 6px; }
.swatch[class*="failure-"], td .swatch { border-radius: 2px; }
.swatch.best { height: 3px; width: 16px; border-radius: 0; vertical-align: middle; }
.swatch.failed { width: 2px; height: 11px; border-radius: 0; vertical-align: middle; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: 13.5px; min-width: 100%; }
th { text-align: left; font-weight: 500; color: var(--quiet); font-size: 12.5px; white-space: nowrap; }
th, td { padding: 7px 18px 7px 0; border-bottom: 1px solid var(--rule); vertical-align: top; }
th:last-child, td:last-child { padding-right: 0; }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
td small { display: block; }
.summary td.name { min-width: 170px; max-width: 300px; overflow-wrap: anywhere; }
.summary td:nth-child(2) { min-width: 130px; overflow-wrap: anywhere; }
.summary td.name a { font-weight: 600; }
.gain { white-space: nowrap; font-variant-numeric: tabular-nums; }
.gain b { display: inline-block; min-width: 52px; font-weight: 620; }
.gain svg { vertical-align: -1px; }
.reason { overflow-wrap: anywhere; min-width: 240px; }
.kind { white-space: nowrap; }
.options { min-width: 0; }
.options code { overflow-wrap: anywhere; }
.before code { color: var(--quiet); }
.after code { color: var(--accent); font-weight: 600; }
details.kernel { border-top: 1px solid var(--rule); margin-top: 30px; padding-top: 16px; scroll-margin-top: 8px; }
summary { cursor: pointer; }
.kernel > summary { display: flex; flex-wrap: wrap; align-items: baseline; gap: 4px 14px; list-style: none; }
.kernel > summary::-webkit-details-marker { display: none; }
.kernel > summary::before { content: "\\25B8"; color: var(--faint); width: 10px; }
.kernel[open] > summary::before { content: "\\25BE"; }
.kernel > summary b { margin-left: auto; color: var(--accent); font-size: 19px; font-weight: 620;
  font-variant-numeric: tabular-nums; }
.sizes { color: var(--quiet); font-size: 13px; overflow-wrap: anywhere; }
.kernel > div { padding-top: 12px; }
.plain > summary { color: var(--quiet); font-size: 13.5px; padding: 6px 0; }
.plain > summary small { margin-left: 10px; }
pre { background: var(--card); border-radius: 6px; padding: 14px 16px; margin: 0 0 14px; overflow: auto; }
pre.text { white-space: pre-wrap; overflow-wrap: anywhere; }
.source pre { max-height: 520px; }
.panels { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 440px), 1fr)); gap: 34px 40px;
  margin: 26px 0 34px; }
.panels > section { min-width: 0; }
.kernel > div > section { margin: 0 0 28px; }
"""

_PICTURES: Final = """
.picture { display: block; width: 100%; height: auto; overflow: visible; }
.picture text { font: 11px system-ui, -apple-system, "Segoe UI", Roboto, Arial, sans-serif; fill: var(--quiet);
  font-variant-numeric: tabular-nums; }
.picture text.label { fill: var(--ink); }
.picture text.number { fill: var(--quiet); }
.picture text.code { font: 11px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; fill: var(--ink); }
.picture text.winner { fill: var(--accent); font-weight: 600; }
.picture text.bound { fill: var(--limit); }
.grid { stroke: var(--rule); stroke-width: 0.75; }
.axis { stroke: var(--faint); stroke-width: 1; }
.division { stroke: var(--faint); stroke-width: 0.75; stroke-dasharray: 2 3; }
.dot { fill: var(--colour); fill-opacity: 0.75; }
.dot:hover { stroke: var(--ink); stroke-width: 1.5; }
.dot.faint { fill: var(--faint); fill-opacity: 0.55; }
path { fill: none; }
path.best { stroke: var(--accent); stroke-width: 2; stroke-linejoin: round; }
line.failed { stroke: var(--limit); stroke-width: 1.25; stroke-opacity: 0.8; }
.level { stroke-width: 1; }
.level.default { stroke: var(--ink); stroke-dasharray: 5 4; }
.level.winner { stroke: var(--accent); }
.level.bound { stroke: var(--limit); stroke-dasharray: 1.5 3; stroke-width: 1.5; }
.leader { stroke: var(--faint); stroke-width: 0.75; }
.quartiles { fill: var(--accent); fill-opacity: 0.16; stroke: var(--accent); stroke-width: 0.75; }
.median { stroke: var(--accent); stroke-width: 1.75; }
.median.strong { stroke-width: 2.5; }
.least { stroke: var(--ink); stroke-width: 1.25; }
.stack { fill: var(--colour); stroke: var(--paper); stroke-width: 0.75; }
.gene { fill: var(--faint); fill-opacity: 0.65; }
.gene.first { fill: var(--accent); fill-opacity: 1; }
.compared.default { fill: var(--faint); fill-opacity: 0.7; }
.compared.winner { fill: var(--accent); }
.compared.bound { fill: none; stroke: var(--limit); stroke-width: 1; stroke-dasharray: 3 2; }
.whisker { stroke: var(--ink); stroke-width: 1.5; }
.gain-bar { fill: var(--accent); }
.one { stroke: var(--ink); stroke-width: 1; }
"""

_CLASSES: Final = """
.origin-seed { --colour: var(--seed); } .origin-random { --colour: var(--random); }
.origin-crossed { --colour: var(--crossed); } .origin-mutated { --colour: var(--mutated); }
.origin-refined { --colour: var(--refined); } .other { --colour: var(--other); }
.best { --colour: var(--accent); } .failed { --colour: var(--limit); }
.failure-illegal { --colour: var(--illegal); }
.failure-compile { --colour: var(--compile); } .failure-crash { --colour: var(--crash); }
.failure-timeout { --colour: var(--timeout); } .failure-memory { --colour: var(--memory); }
.failure-out-of-bounds { --colour: var(--out-of-bounds); } .failure-wrong { --colour: var(--wrong); }
.failure-numerics { --colour: var(--numerics); } .failure-device { --colour: var(--device); }
.failure-lost { --colour: var(--lost); } .failure-slow { --colour: var(--slow); }
"""

_PLACES: Final = """
@media (max-width: 620px) {
  main { padding: 26px 16px 64px; }
  .tiles { gap: 14px 30px; }
  .facts { gap: 4px 14px; }
  .picture text, .picture text.code { font-size: 12.5px; }
}
@media print {
  body { font-size: 11pt; }
  main { max-width: none; padding: 0; }
  details.kernel { break-before: page; border: 0; }
  .panels { grid-template-columns: 1fr 1fr; gap: 20px 26px; }
  .panels > section, tr, .tiles { break-inside: avoid; }
  .wide { overflow: visible; }
  .source pre { max-height: none; white-space: pre-wrap; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
}
"""

STYLE: Final = _COLOURS + _DARK + _TEXT + _PARTS + _PICTURES + _CLASSES + _PLACES
