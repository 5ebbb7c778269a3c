"use strict";
// The frames of a recorded run: what did not change since the frame before is not in the file.
const Replay = (() => {
  function unpacked(run, whole) {
    const base = whole({ nodes: run.nodes }).nodes, figures = base.map(() => []);
    let moved = {}, marks = {}, roles = {};
    const kept = run.frames.map((it, at) => {
      moved = it.moved ? { ...moved, ...it.moved } : moved; // who stopped stays where it was
      marks = it.marks ?? marks; roles = it.roles ?? roles;
      for (const [i, words] of Object.entries(it.figures ?? {})) figures[i].push([at, words]);
      return { moved, marks, roles };
    });
    const last = (changes, at) => changes.findLast((it) => it[0] <= at)?.[1] ?? {};
    function frame(at) {
      const it = run.frames[at], { moved: spots, marks: words, roles: parts } = kept[at], arrived = new Set(it.arrived);
      const nodes = base.map((node, i) => ({
        ...node, x: spots[i]?.[0] ?? node.x, y: spots[i]?.[1] ?? node.y, mark: words[i] ?? "", role: parts[i] ?? "member",
        state: it.states?.[i] ?? "ok", arrived: +arrived.has(i), figures: last(figures[i], at),
        doubts: it.doubts?.[i] ? [it.doubts[i]] : [],
      }));
      return whole({ ...it, nodes });
    }
    return { frame, count: run.frames.length, nodes: base.length, bare: run.frames };
  }

  function episodes(frames) {
    const found = [];
    let since = null;
    for (const it of frames) {
      if (it.legitimate === false && since === null) since = it.time;
      if (it.legitimate === true && since !== null) { found.push([since, it.time - since]); since = null; }
    }
    return found;
  }

  return { unpacked, episodes };
})();
