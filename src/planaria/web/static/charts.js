"use strict";
// The two charts: rates over time, and how long each time of something wrong lasted.
const Charts = (() => {
  let rates = null, healed = null;
  const clock = (_, splits) => splits.map((at) => new Date(at * 1000).toLocaleTimeString("en-GB"));

  function options(element, series, axes) {
    const span = axes.span, x = span ? { time: axes.time, range: () => span } : { time: axes.time };
    const ink = Drawing.colour("--faint"), grid = { stroke: Drawing.colour("--line"), width: 1 };
    return {
      width: Math.max(200, element.clientWidth), height: 150, series, cursor: { drag: { x: false } },
      scales: { x, y: { range: (_, low, high) => [0, Math.max(1, high * 1.1)] } },
      axes: [{ stroke: ink, grid, space: 70, ...(axes.time ? { values: clock } : {}) }, { stroke: ink, grid, size: 55 }],
    };
  }

  function drawRates(element, rows, time, recorded) {
    const wanted = recorded
      ? [["messages with publications", "--pulse"], ["pairs that spoke", "--ring"]]
      : [["held", "--ring"], ["delivered", "--good"]];
    const series = [recorded ? { label: "time" } : { label: "at", value: (_, at) => (at === null ? "--" : clock(_, [at])[0]) }, ...wanted.map(([label, name]) => ({ label, stroke: Drawing.colour(name), width: 1.5 }))];
    if (rates) rates.destroy();
    rates = new uPlot(options(element, series, { time }), rows, element);
  }

  function drawHealed(element, pairs, time, span) {
    const bars = uPlot.paths.bars({ size: [0.6, 40, 4] });
    const series = [{ label: "broken at", value: (_, at) => (at === null ? "--" : time ? clock(_, [at])[0] : at) }, { label: "lasted", stroke: Drawing.colour("--bad"), fill: Drawing.colour("--bad"), paths: bars, points: { show: false } }];
    if (healed) healed.destroy();
    const rows = [pairs.map((it) => it[0]), pairs.map((it) => it[1])];
    healed = new uPlot(options(element, series, { time, span }), rows, element);
  }

  return { drawRates, drawHealed };
})();
