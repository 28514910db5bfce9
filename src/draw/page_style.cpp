#include "draw/page_style.h"

namespace fp8kv {

std::string_view page_style() {
  return R"(
:root{color-scheme:light dark;--paper:#fff;--ink:#1b1f24;--soft:#59636e;--line:#d5dae0;
--box:#f5f7f9;--s0:#0072b2;--s1:#c44e00;--s2:#333708;--s3:#8f76fa;--s4:#77195b;--s5:#a07e98;--s6:#281d89;
--s7:#af684e;
--good:#00694e;--unsure:#7a5200;--bad:#a63d00}
@media(prefers-color-scheme:dark){:root{--paper:#14181d;--ink:#e6eaee;--soft:#9aa5b1;--line:#38414b;
--box:#1c2229;--s0:#56b4e9;--s1:#ff8a4c;--s2:#10fdcd;--s3:#896ef0;--s4:#ad5d9d;--s5:#ffe84e;--s6:#a0947a;
--s7:#c6f19a;
--good:#2fc79b;--unsure:#f0b93a;--bad:#ff8a4c}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);
font:16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans","DejaVu Sans",sans-serif}
main{max-width:70rem;margin:0 auto;padding:2.5rem 1.25rem 4rem}
h1{font-size:1.6rem;line-height:1.25;margin:0;overflow-wrap:anywhere}
h2{font-size:1.2rem;line-height:1.3;margin:3rem 0 .5rem;padding-top:1rem;
border-top:1px solid var(--line)}
h3{font-size:1rem;margin:1.5rem 0 .25rem}
h4{font-size:.875rem;margin:1.25rem 0 .25rem}h5{font-size:.875rem;font-weight:400;margin:.25rem 0}
h3,h4,h5{overflow-wrap:anywhere}
p{margin:.5rem 0;max-width:44rem;overflow-wrap:anywhere}
.kind,.note,.hint,figcaption{color:var(--soft)}
.kind{margin:0 0 .25rem;font-size:.875rem}
.note,.hint,figcaption{font-size:.875rem;max-width:56rem}
.hint{display:none}
.verdict{border-left:4px solid var(--soft);background:var(--box);padding:.75rem 1rem;margin:1.25rem 0}
.verdict p{margin:.25rem 0;max-width:60rem}
.verdict .first{font-size:1.125rem;font-weight:600}
.good{--v:var(--good)}.unsure{--v:var(--unsure)}.bad{--v:var(--bad)}
.verdict{border-color:var(--v)}
.badge{color:var(--v);border:1px solid;border-radius:.25rem;padding:0 .35rem;font-weight:600}
.sign{display:inline-block;width:30px;margin-right:.5rem}
figure{margin:1rem 0}
.scroll{overflow-x:auto;max-width:100%;background:
linear-gradient(to left,var(--paper) 1rem,transparent) right/2rem 100% no-repeat local,
linear-gradient(to left,var(--line),transparent) right/.75rem 100% no-repeat}
.legend{display:flex;flex-wrap:wrap;gap:.125rem 1.25rem;list-style:none;margin:.25rem 0;padding:0;
font-size:.875rem}
.legend li{display:flex;align-items:center;gap:.4rem;min-width:0;overflow-wrap:anywhere}
.legend svg{flex:none}
svg{display:block}
.plot{width:100%;min-width:40rem;height:auto;font-size:12px}
.narrow{min-width:0;max-width:34rem}.narrow text{stroke:var(--paper);stroke-width:4px;paint-order:stroke}
.plot text{fill:var(--soft);font-variant-numeric:tabular-nums}
.plot text.value{fill:var(--ink)}
.grid{stroke:var(--line);stroke-width:1}
.axis{stroke:var(--soft);stroke-width:1}
.s0{--c:var(--s0)}.s1{--c:var(--s1)}.s2{--c:var(--s2)}.s3{--c:var(--s3)}.s4{--c:var(--s4)}
.s5{--c:var(--s5)}.s6{--c:var(--s6)}.s7{--c:var(--s7)}.ink{--c:var(--ink)}.soft{--c:var(--soft)}
.path{fill:none;stroke:var(--c);stroke-width:1.5}
.halo{fill:none;stroke:var(--paper);stroke-width:4}
.mark{fill:var(--c);stroke:var(--paper);stroke-width:1}
.out{fill:var(--paper);stroke:var(--c);stroke-width:1.5}
.err{stroke:var(--c);stroke-width:1}
.bar{fill:var(--c)}
.plot .heading text{fill:var(--ink)}
.tiles{display:flex;flex-wrap:wrap;gap:0 2.5rem}.tiles>*{min-width:0;max-width:100%}
.cell{stroke:var(--paper);stroke-width:.5}
table{border-collapse:collapse;font-size:.875rem;font-variant-numeric:tabular-nums;width:100%}
th,td{padding:.25rem .45rem;text-align:right;white-space:nowrap;border-bottom:1px solid var(--line)}
th{font-weight:600;color:var(--soft)}
.wide{font-size:.8125rem}.wide th,.wide td{padding:.25rem .4rem}
th:first-child,td:first-child{padding-left:0}
.n{text-align:left}
.heat{width:auto}.heat th,.heat td{width:3.75rem;min-width:3.75rem;max-width:3.75rem;text-align:center;
white-space:normal;padding:.4rem .15rem;border:2px solid var(--paper)}
.shade{width:14px;height:14px}
.h0,.h1,.h2,.h3{print-color-adjust:exact;-webkit-print-color-adjust:exact}
.h0{background:#00224e;color:#fff}.h1{background:#434e6c;color:#fff}
.h2{background:#b9ae6c;color:#000}.h3{background:#fde737;color:#000}
th button{all:unset;cursor:pointer}
th button:focus-visible{outline:2px solid var(--s0)}
th[aria-sort=ascending]::after{content:" ▲"}
th[aria-sort=descending]::after{content:" ▼"}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.25rem 1.25rem;font-size:.875rem;margin:0}
dt{color:var(--soft)}dd{margin:0;overflow-wrap:anywhere}
summary{cursor:pointer;margin:.5rem 0}
code{font-family:ui-monospace,"DejaVu Sans Mono",monospace;overflow-wrap:anywhere}
pre{background:var(--box);padding:.75rem 1rem;margin:.5rem 0;font-size:.875rem;white-space:pre-wrap}
.pair{display:grid;grid-template-columns:1fr 1fr;gap:0 1rem}.pair>*{min-width:0}
.pair pre{overflow-wrap:anywhere}.common{color:var(--soft)}
mark{background:#fde737;color:#000;border-bottom:2px solid var(--ink);print-color-adjust:exact;
-webkit-print-color-adjust:exact}
mark.end{font-style:italic}
.answers{grid-template-columns:minmax(8rem,14rem) 1fr}.answers dt{overflow-wrap:anywhere}
@media(max-width:66rem){.wide{font-size:.75rem}
.wide th:not(:first-child),.wide td:not(:first-child){padding:.25rem .3rem}}
@media screen and (max-width:48rem){.hint{display:block;margin:.25rem 0}}
@media(max-width:40rem){main{padding-top:1.5rem}dl,.answers,.pair{grid-template-columns:1fr;gap:0}
dd{margin-bottom:.5rem}}
@media print{:root{color-scheme:light;--paper:#fff;--ink:#000;--soft:#444;--line:#bbb;--box:#fff;
--s0:#0072b2;--s1:#c44e00;--s2:#333708;--s3:#8f76fa;--s4:#77195b;--s5:#a07e98;--s6:#281d89;
--s7:#af684e;--good:#00694e;
--unsure:#7a5200;--bad:#a63d00}main{max-width:none;padding:0}.plot{min-width:0}.scroll{overflow:visible;background:none}
figure,tr{break-inside:avoid}h2,h3{break-after:avoid}table,.wide{font-size:.6rem}
.heat th,.heat td{width:2.6rem;min-width:2.6rem;max-width:2.6rem}
th{white-space:normal}td.n{white-space:normal;overflow-wrap:anywhere}th,td,.wide th,.wide td{padding:.15rem .25rem}}
@page{margin:12mm}
)";
}

std::string_view page_script() {
  // Contains no "less than" and no ampersand: XHTML would need them escaped, HTML unescaped.
  return R"(
for (const head of document.querySelectorAll("table.sortable th")) {
  const column = head.cellIndex;
  const button = document.createElement("button");
  button.append(...head.childNodes);
  head.append(button);
  const key = (row) => row.cells[column].dataset.order ?? row.cells[column].textContent;
  const compare = (a, b) => key(a).localeCompare(key(b), "en", {numeric: true});
  const value = (row) => (key(row) === "" ? NaN : Number(key(row)));
  const sort = () => {
    const up = head.getAttribute("aria-sort") !== "ascending";
    const body = head.closest("table").tBodies[0];
    const rows = [...body.rows];
    const known = (row) => key(row) !== "NaN";
    const number = rows.every((row) => !known(row) || !Number.isNaN(value(row)));
    const order = number ? (a, b) => value(a) - value(b) : compare;
    rows.sort((a, b) => known(b) - known(a) || (known(a) ? (up ? 1 : -1) * order(a, b) : 0));
    for (const other of head.parentNode.cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    body.append(...rows);
  };
  button.type = "button";
  button.addEventListener("click", sort);
}
)";
}

}  // namespace fp8kv
