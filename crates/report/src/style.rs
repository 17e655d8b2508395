// SPDX-License-Identifier: MIT OR Apache-2.0
//! The style sheet of the page and of its figures. Knows classes, not content. Nothing in it loads anything.
//!
//! The colours are close to those of Okabe and Ito, which are distinct with any kind of colour vision,
//! darkened or lightened until each has a contrast of 3:1 or more to the paper. Text has 7:1 or more, and 4.5:1 in the
//! cells of heat maps. Those are of one hue, and the more a cell has the more it differs from the paper.

/// Colours for light surroundings and for paper.
pub(crate) const LIGHT: &str = ":root{--paper:#fff;--ink:#1b1d1f;--muted:#50565c;\
--rule:#c9ced3;--grid:#e4e7ea;--wash:#f5f6f8;--shade:#8a939c;\
--c0:#0072b2;--c1:#c94f00;--c2:#007f5f;--c3:#a8487f;--c4:#856600;--c5:#555b61;--c6:#4b5fd0;--c7:#7a3b12;\
--c8:#b0003a;--c9:#4b7a00;--c10:#007684;--c11:#7b2cbf;\
--h0:#edf3f9;--h1:#d5e3f1;--h2:#b7d0e7;--h3:#92b8da;--h4:#6a9dcb;--h5:#3f7ab3;--h6:#29629b;--h7:#164a7e;--h8:#08335f}\n";

/// Colours for dark surroundings.
pub(crate) const DARK: &str = "@media screen and (prefers-color-scheme:dark){:root{--paper:#14171a;--ink:#e8eaec;\
--muted:#b3bac1;--rule:#4a5158;--grid:#2b3036;--wash:#1c2024;--shade:#59636d;\
--c0:#5ab4ec;--c1:#f5894a;--c2:#35c7a0;--c3:#e595c4;--c4:#dcb13a;--c5:#b4bac0;--c6:#9aa8ff;--c7:#cf9468;\
--c8:#ff7a94;--c9:#9ccc4e;--c10:#4dd0e1;--c11:#c792ff;\
--h0:#1b2733;--h1:#1d3346;--h2:#21435e;--h3:#27567c;--h4:#2f6a9b;--h5:#4a8fc4;--h6:#74aedb;--h7:#a2c9e9;\
--h8:#d0e4f5}}\n";

/// Figures.
pub(crate) const CHART: &str = "\
svg.chart{font-family:system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif;\
font-variant-numeric:tabular-nums}
.chart text{fill:var(--ink)}
.chart .tick{fill:var(--muted)}
.chart .axis-title{fill:var(--ink)}
.chart .value{paint-order:stroke;stroke:var(--paper);stroke-width:3px;stroke-linejoin:round}
.chart .grid{stroke:var(--grid);stroke-width:1}
.chart .axis{stroke:var(--muted);stroke-width:1}
.chart .bar{fill:var(--k);stroke:var(--k);stroke-width:1}
.chart .curve{fill:none;stroke:var(--k);stroke-width:1.9;stroke-linejoin:round}
.chart .error{fill:none;stroke:var(--ink);stroke-width:1.3}
.chart .error.under{stroke:var(--paper);stroke-width:3.6}
.chart .dot{fill:var(--k);stroke:var(--k);stroke-width:1.5}
.chart .dot.published{fill:var(--paper)}
.chart .paper{fill:var(--paper)}
.chart .ink{fill:var(--k)}
.chart .k0{--k:var(--c0)}.chart .k1{--k:var(--c1)}.chart .k2{--k:var(--c2)}.chart .k3{--k:var(--c3)}
.chart .k4{--k:var(--c4)}.chart .k5{--k:var(--c5)}.chart .k6{--k:var(--c6)}.chart .k7{--k:var(--c7)}
.chart .k8{--k:var(--c8)}.chart .k9{--k:var(--c9)}.chart .k10{--k:var(--c10)}.chart .k11{--k:var(--c11)}
.chart .tip{fill:transparent}
.chart .cell{fill:var(--h)}
.chart .frame{fill:none;stroke:var(--muted);stroke-width:1}
.chart text.in.faint{fill:var(--ink)}.chart text.in.strong{fill:var(--paper)}
.chart .h0{--h:var(--h0)}.chart .h1{--h:var(--h1)}.chart .h2{--h:var(--h2)}.chart .h3{--h:var(--h3)}
.chart .h4{--h:var(--h4)}.chart .h5{--h:var(--h5)}.chart .h6{--h:var(--h6)}.chart .h7{--h:var(--h7)}
.chart .h8{--h:var(--h8)}
.chart text.label[class*=k]{fill:var(--k,var(--ink));font-weight:600}
";

pub(crate) const PAGE: &str = "\
*{box-sizing:border-box}
html{color-scheme:light dark;-webkit-text-size-adjust:100%}
body{margin:0;background:var(--paper);color:var(--ink);\
font:16px/1.55 system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif}
main{max-width:62rem;margin:0 auto;padding:2.5rem 1.5rem 4rem}
h1{font-size:1.8rem;line-height:1.2;margin:0 0 .4rem;letter-spacing:-.01em;text-wrap:balance}
h2{font-size:1.2rem;line-height:1.3;margin:2.8rem 0 .8rem}
p{margin:.6rem 0;max-width:46rem}
h1,h2,p,li,dd,caption,figcaption{overflow-wrap:break-word}
.verdict{border-left:.25rem solid var(--c0);background:var(--wash);padding:.5rem 1rem;margin:1rem 0 1.4rem}
.verdict p{font-size:1.12rem;line-height:1.45;margin:.3rem 0}
.meta{color:var(--muted);font-size:.92rem;margin:0 0 1.4rem}
.meta span:not(:last-child)::after{content:'\\00a0\\00b7 '}
.scroll{overflow-x:auto;margin:1rem calc(min(0px,(62rem - 100vw)/2)) 1rem 0;\
background:linear-gradient(to right,var(--paper) 50%,transparent) left/2.4rem 100% no-repeat local,\
linear-gradient(to left,var(--paper) 50%,transparent) right/2.4rem 100% no-repeat local,\
linear-gradient(to right,var(--shade),transparent) left/.8rem 100% no-repeat scroll,\
linear-gradient(to left,var(--shade),transparent) right/.8rem 100% no-repeat scroll}
.scroll:focus-visible,summary:focus-visible,button:focus-visible{outline:2px solid var(--c0);outline-offset:2px}
table{min-width:min(32rem,100%);border-collapse:collapse;font-size:.88rem;line-height:1.35;\
font-variant-numeric:tabular-nums;border-top:2px solid var(--ink);border-bottom:2px solid var(--ink)}
caption{caption-side:top;text-align:left;color:var(--muted);padding:0 0 .45rem;font-size:.92rem}
th,td{padding:.28rem .7rem;text-align:right;vertical-align:top;font-weight:400;white-space:nowrap}
thead th{vertical-align:bottom;font-weight:600;white-space:normal}
thead{border-bottom:1px solid var(--ink)}
thead th.group{text-align:center;border-bottom:1px solid var(--rule)}
thead .unit{display:block;font-weight:400;color:var(--muted)}
thead th.sub{font-weight:400;color:var(--muted)}
th.name,td.name{text-align:left}
td.name{white-space:normal}
tbody th.name{max-width:18rem;white-space:normal;min-width:6rem;overflow-wrap:break-word}tbody \
th.metric{max-width:none;white-space:nowrap}
tbody+tbody{border-top:1px solid var(--rule)}
td.sim{font-weight:600}
td.first,th.first{border-left:1px solid var(--rule)}
.mark{display:inline-block;min-width:3.1em;text-align:left;margin-left:.45em;font-size:.85em;color:var(--muted)}
.mark.fit{font-style:italic}
.mark.off{color:var(--ink);font-weight:700}
.none{color:var(--muted)}
figure{margin:1rem 0 2.6rem}
figure svg{display:block;width:100%;max-width:52rem;height:auto}
svg.narrow{display:none}
figcaption{margin:.5rem 0 .6rem;font-size:.95rem;max-width:46rem}
.save{margin:.4rem 0}
.save button{font:inherit;font-size:.88rem;color:var(--ink);background:var(--wash);border:1px solid var(--rule);\
border-radius:4px;padding:.2rem .7rem;margin:0 .5rem 0 0;cursor:pointer}
details{margin:.5rem 0;font-size:.92rem}
summary{cursor:pointer;color:var(--muted);width:fit-content}
pre{background:var(--wash);border:1px solid var(--grid);border-radius:4px;padding:.8rem 1rem;overflow:auto;\
max-height:32rem;font:.82rem/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace}
pre.command{white-space:pre-wrap;overflow-wrap:anywhere}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.25rem 1.2rem;margin:1rem 0;font-size:.95rem;max-width:50rem}
dt{color:var(--muted)}
dd{margin:0}
dl.legend dt{color:var(--ink);font-weight:600}
ul,ol{padding-left:1.3rem;max-width:46rem}
li{margin:.25rem 0}
@media (max-width:600px){main{padding:1.4rem 1rem 3rem}h1{font-size:1.45rem}
svg.wide{display:none}svg.narrow{display:block}th,td{padding:.28rem .5rem}}
@media print{@page{margin:16mm}html{font-size:9.5pt}body{font-size:1rem}main{max-width:none;padding:0}
h2{margin-top:1.4rem;break-after:avoid}
svg.wide{display:block}svg.narrow{display:none}figure svg{max-width:14cm}
figure>svg,figcaption,tr,li{break-inside:avoid}figcaption{break-before:avoid}
.scroll{overflow:visible;margin-right:0;background:none}.save,figure details{display:none}
pre{max-height:none;white-space:pre-wrap;overflow:visible}
table{font-size:.85rem}th,td{padding:.15rem .35rem}
*{print-color-adjust:exact;-webkit-print-color-adjust:exact}
details.config::details-content{content-visibility:visible;display:block;block-size:auto}}
";
