#include "base/page/html.h"

namespace troupe::base {

const std::string_view kPageStyle = R"css(
body{font:15px/1.45 system-ui,sans-serif;margin:1.5em auto;max-width:1100px;padding:0 1em;color:#1b1f24;
  background:#fff;overflow-wrap:anywhere}
h1{font-size:1.5em;margin:.3em 0}h2{font-size:1.15em;margin-top:2em;border-bottom:1px solid #d5dae0}
h3{font-size:1em;margin:1.4em 0 .4em}small{color:#4a5560;font-weight:400}
.wide{overflow-x:auto;margin:.6em 0}table{border-collapse:collapse}
td,th{padding:.2em .7em;text-align:left;border-bottom:1px solid #e6e9ed;vertical-align:top;overflow-wrap:normal}
td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}td.n{white-space:nowrap}
pre.lines{white-space:pre-wrap}pre.lines span{display:block;min-height:1.4em;padding-left:6em;text-indent:-6em}
pre{overflow-x:auto;background:#f6f7f8;padding:.7em;font-size:13px;line-height:1.4}
code{background:#f1f3f5;padding:0 .25em}pre code{background:none;padding:0}
mark{background:#fff0b8}.from{color:#6b7680}
.problem,.error{color:#b3261e;font-weight:600}.warning,.warn{color:#8a5a00}.note,.info{color:#4a5560}
.ok{color:#1a7f37;font-weight:600}
figure{margin:.8em 0}figcaption{font-size:13px;color:#4a5560}img,video{max-width:100%;height:auto}
.dims,.sheet,.charts{display:flex;flex-wrap:wrap;gap:10px 18px}
.dims figure{margin:0;width:180px}.sheet figure{margin:0}.sheet img{display:block}
svg.h{width:180px;height:56px;display:block}svg.h rect{fill:#4477aa}svg.h line{stroke:#9aa4af}
svg.h text{font-size:9px;fill:#4a5560}
.charts figure{flex:1 1 440px;min-width:0}
.pair{display:grid;grid-template-columns:170px minmax(0,1fr);gap:0 16px;margin:.6em 0}
.pair video{width:160px;display:block;margin-top:.8em}
figure.curves figcaption{color:#1b1f24;font-weight:600}
svg.curves{width:100%;height:auto;display:block;touch-action:pan-y}
svg.curves text{font-size:13px;fill:#4a5560}svg.curves .grid{stroke:#e4e7ea}svg.curves .axis{stroke:#8d96a0;fill:none}
svg.curves .cursor{stroke:#8d96a0;stroke-dasharray:3 3}
.line{fill:none;stroke:currentColor;stroke-width:1.6;stroke-linejoin:round}
.marks{fill:none;stroke:currentColor;stroke-width:5;stroke-linecap:round}
.band{fill:currentColor;opacity:.18;stroke:none}.dash .line{stroke-dasharray:5 3}
.keys{display:flex;flex-wrap:wrap;gap:2px 4px}
.keys button{font:inherit;font-size:13px;border:1px solid transparent;background:none;padding:1px 6px;cursor:pointer;
  text-align:left}
.keys button.key::before{content:"";display:inline-block;width:14px;border-top:3px solid;margin-right:5px;
  vertical-align:middle}
.keys button.dash::before{border-top-style:dashed}
.keys button span{color:#1b1f24}.keys button[aria-pressed=false]{opacity:.35}
.keys button.scale{border-color:#b8c0c8;border-radius:3px;color:#1b1f24}.keys button.scale[aria-pressed=false]{opacity:1}
.keys button.scale[aria-pressed=true]{background:#e4ecf5}
.c0{color:#4477aa}.c1{color:#cc6633}.c2{color:#228833}.c3{color:#aa3377}.c4{color:#8a7a00}
.c5{color:#2a93a8}.c6{color:#6a51a3}.c7{color:#555b61}
@media(max-width:600px){body{margin:.5em auto;padding:0 .7em}svg.curves text{font-size:20px}
  .pair{grid-template-columns:minmax(0,1fr)}
  .stacks,.stacks tbody,.stacks tr,.stacks td{display:block}.stacks tr:first-child{display:none}
  .stacks tr{border-bottom:1px solid #d5dae0;padding:.4em 0}.stacks td{border:0;padding:.1em 0;text-align:left;
    overflow-wrap:anywhere}
  .stacks td:not(:empty)::before{content:attr(data-name) ": ";color:#4a5560}
  pre.lines span{padding-left:2em;text-indent:-2em}}
)css";

}  // namespace troupe::base
