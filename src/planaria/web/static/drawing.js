"use strict";
// Draws a frame on a canvas: lines of one kind in one stroke, nodes of one state in one fill.
const Drawing = (() => {
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  // What each kind of line is called, how wide it is, and whether it has a direction.
  const LINES = {
    link: { width: 1, words: "other connection" }, view: { width: 1, words: "knows" },
    shortcut: { width: 1, words: "shortcut" }, super: { width: 1.5, arrow: true, words: "contact in a topic above" },
    down: { width: 1.5, arrow: true, words: "link, to the one whose turn comes first" },
    tree: { width: 2, words: "tree" }, ring: { width: 2, words: "ring" },
  };
  // What each state of a node is called, and its colour.
  const STATES = {
    ok: { ink: "--good", words: "in place" }, once: { ink: "--once", words: "seen out of place once, or in doubt" },
    silent: { ink: "--silent", words: "does not answer" }, doubts: { ink: "--bad", words: "out of place" },
  };
  const NAMES_MAX = 64; // beyond this names are a grey carpet
  const WIDE_MAX = 120; // lines: a line of one pixel is drawn six times as fast as a wider one

  function fit(canvas) {
    const ratio = window.devicePixelRatio || 1;
    const width = Math.round(canvas.clientWidth * ratio), height = Math.round(canvas.clientHeight * ratio);
    if (canvas.width !== width || canvas.height !== height) { canvas.width = width; canvas.height = height; }
    return ratio;
  }

  // Half of the picture in pixels, each way: a ring stays round, anything else fills the canvas.
  function halves(canvas, frame) {
    const margin = 36 * (window.devicePixelRatio || 1);
    const wide = Math.max(10, canvas.width / 2 - margin), high = Math.max(10, canvas.height / 2 - margin);
    return frame.wide ? [wide, high] : [Math.min(wide, high), Math.min(wide, high)];
  }

  // Where a node is on its way from the frame before.
  function placer(canvas, frame, share) {
    const [wide, high] = halves(canvas, frame), left = 1 - share;
    return (node) => [
      canvas.width / 2 + (node.x * share + (node.px ?? node.x) * left) * wide,
      canvas.height / 2 + (node.y * share + (node.py ?? node.y) * left) * high,
    ];
  }

  function radius(count) { return Math.max(2.5, Math.min(9, 160 / Math.sqrt(count) / 4)); }

  function paint(canvas, frame, chosen, share) {
    const ratio = fit(canvas), pen = canvas.getContext("2d"), at = placer(canvas, frame, share);
    pen.clearRect(0, 0, canvas.width, canvas.height);
    const spots = frame.nodes.map(at), size = radius(frame.nodes.length) * ratio;
    const small = frame.nodes.length <= NAMES_MAX, number = frame.nodes.findIndex((node) => node.id === chosen);
    regions(pen, canvas, frame, ratio);
    for (const kind of Object.keys(LINES)) {
      const its = frame.edges.filter((edge) => edge[2] === kind);
      strokes(pen, its, spots, size, LINES[kind], colour(`--${kind}`), ratio);
    }
    const own = frame.edges.filter(([a, b]) => a === number || b === number);
    strokes(pen, own, spots, size, { width: 3 }, colour("--pulse"), ratio);
    ripples(pen, frame, spots, size, share, ratio);
    for (const [state, it] of Object.entries(STATES)) dots(pen, frame, spots, size, state, colour(it.ink));
    pulses(pen, frame, spots, size, share);
    outlines(pen, frame, spots, size, chosen, ratio);
    titles(pen, canvas, frame, ratio);
    if (small) { ends(pen, frame, spots, ratio); names(pen, canvas, frame, spots, size, number, ratio); }
  }

  function strokes(pen, edges, spots, size, how, ink, ratio) {
    pen.beginPath();
    for (const [a, b] of edges) {
      if (!spots[a] || !spots[b]) continue;
      pen.moveTo(spots[a][0], spots[a][1]); pen.lineTo(spots[b][0], spots[b][1]);
      if (how.arrow) arrow(pen, spots[a], spots[b], size + 3 * ratio, 6 * ratio);
    }
    pen.strokeStyle = ink; pen.lineWidth = edges.length > WIDE_MAX ? 1 : how.width * ratio; pen.stroke();
  }

  function arrow(pen, from, to, away, length) {
    const far = Math.hypot(to[0] - from[0], to[1] - from[1]) || 1;
    const dx = (to[0] - from[0]) / far, dy = (to[1] - from[1]) / far, x = to[0] - dx * away, y = to[1] - dy * away;
    pen.moveTo(x - (dx + dy * 0.6) * length, y - (dy - dx * 0.6) * length); pen.lineTo(x, y);
    pen.lineTo(x - (dx - dy * 0.6) * length, y - (dy + dx * 0.6) * length);
  }

  // Groups, and which belongs to which.
  function regions(pen, canvas, frame, ratio) {
    const [wide, high] = halves(canvas, frame), middle = (it) => [canvas.width / 2 + it.x * wide, canvas.height / 2 + it.y * high];
    pen.strokeStyle = colour("--line"); pen.fillStyle = colour("--region"); pen.lineWidth = 6 * ratio;
    pen.beginPath();
    for (const it of frame.regions) for (const above of it.above ?? []) {
      pen.moveTo(...middle(it)); pen.lineTo(...middle(frame.regions[above]));
    }
    pen.stroke();
    for (const it of frame.regions) {
      pen.beginPath(); pen.ellipse(...middle(it), it.wide * wide, it.high * high, 0, 0, 2 * Math.PI);
      pen.lineWidth = ratio; pen.fill(); pen.stroke();
    }
  }

  function titles(pen, canvas, frame, ratio) {
    const [wide, high] = halves(canvas, frame);
    pen.font = `600 ${13 * ratio}px system-ui, sans-serif`; pen.textAlign = "center"; pen.textBaseline = "bottom";
    pen.fillStyle = colour("--faint"); pen.strokeStyle = colour("--panel"); pen.lineWidth = 4 * ratio; pen.lineJoin = "round";
    for (const it of frame.regions) {
      const x = canvas.width / 2 + it.x * wide, top = canvas.height / 2 + (it.y - it.high) * high - 3 * ratio;
      pen.strokeText(it.name, x, Math.max(16 * ratio, top)); pen.fillText(it.name, x, Math.max(16 * ratio, top));
    }
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

  // A node to which publications came rings once.
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
    if (share >= 1) return;
    pen.beginPath();
    for (const [a, b] of frame.pulses) {
      if (!spots[a] || !spots[b]) continue;
      const x = spots[a][0] + (spots[b][0] - spots[a][0]) * share, y = spots[a][1] + (spots[b][1] - spots[a][1]) * share;
      pen.moveTo(x + size / 2, y); pen.arc(x, y, size / 2, 0, 2 * Math.PI);
    }
    pen.fillStyle = colour("--pulse"); pen.fill();
  }

  // A supervisor is in a square; the root of a tree and whoever may speak now in a circle.
  function outlines(pen, frame, spots, size, chosen, ratio) {
    frame.nodes.forEach((node, i) => {
      const mine = node.id === chosen;
      if (!mine && node.role === "member") return;
      const [x, y] = spots[i], far = size + (mine ? 5 : 2.5) * ratio;
      pen.beginPath();
      if (node.role === "supervisor" && !mine) pen.rect(x - far, y - far, 2 * far, 2 * far);
      else pen.arc(x, y, far, 0, 2 * Math.PI);
      pen.strokeStyle = colour(mine ? "--pulse" : "--ink"); pen.lineWidth = (mine ? 3 : 1.2) * ratio; pen.stroke();
    });
  }

  function ends(pen, frame, spots, ratio) {
    pen.font = `${10 * ratio}px system-ui, sans-serif`; pen.textAlign = "center"; pen.textBaseline = "middle";
    for (const [a, b, words] of frame.ends) {
      if (!spots[a] || !spots[b]) continue;
      const far = Math.hypot(spots[b][0] - spots[a][0], spots[b][1] - spots[a][1]) || 1, share = Math.min(0.35, (26 * ratio) / far);
      const x = spots[a][0] + (spots[b][0] - spots[a][0]) * share, y = spots[a][1] + (spots[b][1] - spots[a][1]) * share;
      const half = pen.measureText(words).width / 2 + 3 * ratio;
      pen.fillStyle = colour("--panel"); pen.fillRect(x - half, y - 7 * ratio, 2 * half, 14 * ratio);
      pen.fillStyle = colour("--tree"); pen.fillText(words, x, y);
    }
  }

  // Names that would stand on others are left out; the chosen one's never.
  function names(pen, canvas, frame, spots, size, number, ratio) {
    const beside = !frame.wide || frame.edges.some((edge) => edge[2] === "tree");
    const taken = [], order = frame.nodes.map((_, i) => i).sort((a, b) => (b === number) - (a === number));
    pen.font = `${12 * ratio}px system-ui, sans-serif`; pen.textBaseline = "middle"; pen.textAlign = "left";
    pen.strokeStyle = colour("--panel"); pen.lineWidth = 4 * ratio; pen.lineJoin = "round";
    for (const i of order) {
      const node = frame.nodes[i], mark = node.mark ? ` ${node.mark}` : "", [x, y] = spots[i];
      const name = pen.measureText(node.name).width, width = name + pen.measureText(mark).width, high = 14 * ratio;
      let left = node.x >= 0 || frame.wide ? x + size + 5 * ratio : x - size - 5 * ratio - width, middle = y;
      if (!beside) { left = x - width / 2; middle = y + size + 10 * ratio; }
      left = Math.max(2, Math.min(left, canvas.width - width - 2));
      const box = [left, middle - high / 2, left + width, middle + high / 2];
      if (taken.some((it) => it[0] < box[2] && box[0] < it[2] && it[1] < box[3] && box[1] < it[3])) continue;
      taken.push(box);
      pen.strokeText(node.name + mark, left, middle); // a halo, so that lines do not cross it
      pen.fillStyle = colour("--ink"); pen.fillText(node.name, left, middle);
      if (mark) { pen.fillStyle = colour("--faint"); pen.fillText(mark, left + name, middle); }
    }
  }

  function nearest(canvas, frame, event) {
    const box = canvas.getBoundingClientRect(), ratio = window.devicePixelRatio || 1, at = placer(canvas, frame, 1);
    const x = (event.clientX - box.left) * ratio, y = (event.clientY - box.top) * ratio;
    let best = null, distance = (16 * ratio) ** 2;
    for (const node of frame.nodes) {
      const [nx, ny] = at(node), d = (nx - x) ** 2 + (ny - y) ** 2;
      if (d < distance) { best = node.id; distance = d; }
    }
    return best;
  }

  return { paint, nearest, colour, LINES, STATES };
})();
