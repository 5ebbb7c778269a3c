"use strict";
// Draws a frame on a canvas: lines of one kind in one stroke, nodes of one state in one fill.
const Drawing = (() => {
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const LINES = [["link", "--link", 1], ["shortcut", "--shortcut", 1], ["ring", "--ring", 2]];
  const NODES = [["ok", "--good"], ["silent", "--silent"], ["doubts", "--bad"]];
  const NAMES_MAX = 64; // beyond this names are a grey carpet

  function fit(canvas) {
    const ratio = window.devicePixelRatio || 1;
    const width = Math.round(canvas.clientWidth * ratio), height = Math.round(canvas.clientHeight * ratio);
    if (canvas.width !== width || canvas.height !== height) { canvas.width = width; canvas.height = height; }
    return ratio;
  }

  function placer(canvas, nodes) {
    const margin = 36 * (window.devicePixelRatio || 1);
    const half = Math.max(10, Math.min(canvas.width, canvas.height) / 2 - margin);
    return (node) => [canvas.width / 2 + node.x * half, canvas.height / 2 + node.y * half];
  }

  function radius(count) { return Math.max(2.5, Math.min(9, 160 / Math.sqrt(count) / 4)); }

  function paint(canvas, frame, chosen, share) {
    const ratio = fit(canvas), pen = canvas.getContext("2d"), at = placer(canvas, frame.nodes);
    pen.clearRect(0, 0, canvas.width, canvas.height);
    const spots = frame.nodes.map(at), size = radius(frame.nodes.length) * ratio;
    for (const [kind, name, width] of LINES) {
      pen.beginPath();
      for (const [a, b, its] of frame.edges) {
        if (its !== kind || !spots[a] || !spots[b]) continue;
        pen.moveTo(spots[a][0], spots[a][1]); pen.lineTo(spots[b][0], spots[b][1]);
      }
      pen.strokeStyle = colour(name); pen.lineWidth = width * ratio; pen.stroke();
    }
    ripples(pen, frame, spots, size, share, ratio);
    for (const [state, name] of NODES) dots(pen, frame, spots, size, state, colour(name));
    pulses(pen, frame, spots, size, share);
    outlines(pen, frame, spots, size, chosen, ratio);
    if (frame.nodes.length <= NAMES_MAX) names(pen, frame, spots, size, ratio);
  }

  function dots(pen, frame, spots, size, state, fill) {
    pen.beginPath();
    frame.nodes.forEach((node, i) => {
      if (node.state !== state) return;
      const [x, y] = spots[i];
      pen.moveTo(x + size, y); pen.arc(x, y, size, 0, 2 * Math.PI);
    });
    pen.fillStyle = fill; pen.fill();
  }

  // A node that has come to hold publications rings once.
  function ripples(pen, frame, spots, size, share, ratio) {
    if (share >= 1) return;
    pen.beginPath();
    frame.nodes.forEach((node, i) => {
      if (!node.arrived) return;
      const [x, y] = spots[i], far = size * (1 + 2 * share);
      pen.moveTo(x + far, y); pen.arc(x, y, far, 0, 2 * Math.PI);
    });
    pen.globalAlpha = 1 - share; pen.strokeStyle = colour("--pulse"); pen.lineWidth = 2 * ratio; pen.stroke();
    pen.globalAlpha = 1;
  }

  function pulses(pen, frame, spots, size, share) {
    pen.beginPath();
    for (const [a, b] of frame.pulses) {
      if (!spots[a] || !spots[b]) continue;
      const x = spots[a][0] + (spots[b][0] - spots[a][0]) * share, y = spots[a][1] + (spots[b][1] - spots[a][1]) * share;
      pen.moveTo(x + size / 2, y); pen.arc(x, y, size / 2, 0, 2 * Math.PI);
    }
    pen.fillStyle = colour("--pulse"); pen.fill();
  }

  function outlines(pen, frame, spots, size, chosen, ratio) {
    frame.nodes.forEach((node, i) => {
      const mine = node.id === chosen;
      if (!mine && node.role !== "supervisor") return;
      const [x, y] = spots[i], far = size + (mine ? 5 : 2.5) * ratio;
      pen.beginPath();
      if (node.role === "supervisor" && !mine) pen.rect(x - far, y - far, 2 * far, 2 * far);
      else pen.arc(x, y, far, 0, 2 * Math.PI);
      pen.strokeStyle = colour(mine ? "--pulse" : "--ink"); pen.lineWidth = (mine ? 3 : 1.2) * ratio; pen.stroke();
    });
  }

  function names(pen, frame, spots, size, ratio) {
    pen.font = `${12 * ratio}px system-ui, sans-serif`;
    pen.fillStyle = colour("--ink"); pen.textBaseline = "middle";
    frame.nodes.forEach((node, i) => {
      const [x, y] = spots[i], right = node.x >= 0;
      pen.textAlign = right ? "left" : "right";
      pen.fillText(node.name, x + (right ? 1 : -1) * (size + 5 * ratio), y);
    });
  }

  function nearest(canvas, frame, event) {
    const box = canvas.getBoundingClientRect(), ratio = window.devicePixelRatio || 1, at = placer(canvas, frame.nodes);
    const x = (event.clientX - box.left) * ratio, y = (event.clientY - box.top) * ratio;
    let best = null, distance = (16 * ratio) ** 2;
    for (const node of frame.nodes) {
      const [nx, ny] = at(node), d = (nx - x) ** 2 + (ny - y) ** 2;
      if (d < distance) { best = node.id; distance = d; }
    }
    return best;
  }

  return { paint, nearest, colour };
})();
