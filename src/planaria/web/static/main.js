"use strict";
// One page for a network that runs (frames come as server-sent events) and for a recorded run.
(() => {
  const { byId } = Panels, canvas = byId("canvas"), recorded = document.body.dataset.mode === "recorded";
  const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
  const MOVE_MS = 700;
  let frame = null, chosen = null, shown = 0, topic = "", overlay = "ring", source = null, history = [];

  // What Python leaves out because it is the default.
  function whole(it) {
    const nodes = it.nodes ?? [];
    for (const client of it.clients ?? []) { client.does ??= []; client.connections ??= 1; client.behind ??= false; }
    for (const node of nodes) {
      node.state ??= "ok"; node.role ??= "member"; node.mark ??= ""; node.arrived ??= 0; node.doubts ??= []; node.figures ??= {};
    }
    const none = { edges: [], ends: [], regions: [], pulses: [], events: [], topics: [], healed: [], lamps: [], clients: [] };
    return { nodes, ...none, overlay: "ring", topic: "", hidden: 0, wide: false, ...it, nodes };
  }

  // Nodes move from where they were, unless another picture is shown.
  function show(next) {
    const same = frame && frame.overlay === next.overlay && frame.topic === next.topic;
    const before = new Map(same ? frame.nodes.map((node) => [node.id, node]) : []);
    let still = !next.pulses.length;
    for (const node of next.nodes) {
      const old = before.get(node.id);
      if (old) { node.px = old.x; node.py = old.y; }
      still &&= !node.arrived && (!old || (old.x === node.x && old.y === node.y));
    }
    frame = next; shown = still ? -Infinity : performance.now();
    Panels.verdict(frame); Panels.lamps(frame); Panels.chooser(frame, chosen); Panels.detail(frame, chosen); Panels.legend(frame);
    const bad = frame.nodes.filter((node) => ["doubts", "silent"].includes(node.state)).length;
    canvas.setAttribute("aria-label", `${frame.nodes.length} nodes, ${frame.edges.length} lines, ${bad} nodes out of order`);
    requestAnimationFrame(tick);
  }

  function tick() {
    if (!frame) return;
    const share = calm ? 1 : Math.min(1, (performance.now() - shown) / MOVE_MS);
    Drawing.paint(canvas, frame, chosen, share);
    if (share < 1) requestAnimationFrame(tick);
  }

  function choose(id) {
    chosen = id;
    if (!frame) return;
    Panels.chooser(frame, chosen); Panels.detail(frame, chosen); Drawing.paint(canvas, frame, chosen, 1);
  }

  function step(by) {
    if (!frame || !frame.nodes.length) return;
    const at = frame.nodes.findIndex((node) => node.id === chosen), count = frame.nodes.length;
    choose(frame.nodes[at < 0 ? (by > 0 ? 0 : count - 1) : (at + by + count) % count].id);
  }

  function theme() {
    const root = document.documentElement, dark = getComputedStyle(root).colorScheme === "dark";
    root.dataset.theme = dark ? "light" : "dark";
    redraw();
  }

  // A live network

  function live() {
    const address = new URL("events", location.href);
    address.search = "";
    if (topic) { address.searchParams.set("topic", topic); address.searchParams.set("overlay", overlay); }
    source?.close();
    source = new EventSource(address);
    source.addEventListener("history", (event) => { history = JSON.parse(event.data); });
    source.addEventListener("faults", (event) => buttons(JSON.parse(event.data)));
    source.addEventListener("frame", (event) => liveFrame(whole(JSON.parse(event.data))));
    source.addEventListener("failure", (event) => trouble(JSON.parse(event.data) ?? "looking for the network"));
    source.addEventListener("error", () => trouble("the dashboard does not answer; trying again"));
  }

  // Only where the network allows it.
  function buttons(names) {
    const place = byId("faults");
    place.hidden = !names.length;
    place.querySelectorAll("button").forEach((button) => button.remove());
    for (const name of names) {
      const button = document.createElement("button");
      button.type = "button"; button.textContent = name;
      button.addEventListener("click", () => chaos(name));
      place.append(button);
    }
  }

  async function chaos(name) {
    const query = new URLSearchParams({ fault: name, topic: frame?.overlay === "ring" ? frame.topic : "" });
    const answer = await fetch(`chaos?${query}`, { method: "POST", headers: { "X-Planaria": "chaos" } });
    if (!answer.ok) Panels.happened("", (await answer.text()).trim());
  }

  function liveFrame(next) {
    const when = new Date(next.time * 1000).toLocaleTimeString("en-GB");
    history.push([next.time, next.legitimate, next.rates?.held ?? 0, next.rates?.delivered ?? 0]);
    history = history.slice(-600);
    byId("clock").textContent = `${when} · ${next.nodes.length} nodes · ${next.rates?.clients ?? 0} clients`;
    for (const words of next.events) Panels.happened(when, words);
    show(next); Panels.clients(next, choose); Panels.topics(next, (it) => { topic = it.name; overlay = it.overlay; live(); });
    liveCharts();
  }

  function liveCharts() {
    Charts.drawRates(byId("rates"), [0, 2, 3].map((at) => history.map((row) => row[at])), true, false);
    const now = frame.time;
    Charts.drawHealed(byId("healed"), frame.healed, true, [Math.min(history[0][0], frame.healed[0]?.[0] ?? now, now - 60), now]);
  }

  function trouble(words) {
    byId("verdict").className = "verdict broken";
    byId("verdict").textContent = words;
  }

  // A recorded run

  function replay() {
    const run = JSON.parse(byId("recording").textContent), film = Replay.unpacked(run, whole), frames = film.bare;
    const slider = byId("slider");
    let timer = null;
    byId("player").hidden = false; slider.max = film.count - 1;
    byId("ratecaption").textContent = "What was said, per " + run.unit;
    byId("healcaption").textContent = `How long it was not legitimate, in ${run.unit}s`;
    frames.forEach((it) => (it.events ?? []).forEach((words) => Panels.happened(`${it.time}`, words)));
    function go(at) {
      const place = Math.max(0, Math.min(frames.length - 1, at));
      slider.value = place; byId("when").textContent = `${run.unit} ${frames[place].time}`;
      show(film.frame(place));
    }
    function play() {
      const stop = timer !== null;
      if (stop) { clearInterval(timer); timer = null; } else {
        if (+slider.value === frames.length - 1) go(0);
        timer = setInterval(() => { go(+slider.value + 1); if (+slider.value === frames.length - 1) play(); }, MOVE_MS);
      }
      byId("play").textContent = stop ? "▶" : "❚❚"; byId("play").setAttribute("aria-label", stop ? "Play" : "Pause");
    }
    slider.addEventListener("input", () => go(+slider.value));
    byId("play").addEventListener("click", play);
    keys.set(" ", play); keys.set("Home", () => go(0)); keys.set("End", () => go(frames.length - 1));
    replayCharts = () => {
      const rows = [frames.map((it) => it.time), frames.map((it) => it.pulses?.length ?? 0), frames.map((it) => it.edges?.length ?? 0)];
      Charts.drawRates(byId("rates"), rows, false, true);
      Charts.drawHealed(byId("healed"), Replay.episodes(frames), false, [frames[0].time, frames[frames.length - 1].time + 1]);
    };
    byId("clock").textContent = `${film.nodes} nodes · ${film.count} ${run.unit}s`;
    go(0); replayCharts();
  }

  let replayCharts = () => {};
  function redraw() {
    if (!frame) return;
    Drawing.paint(canvas, frame, chosen, 1);
    if (recorded) replayCharts(); else liveCharts();
  }

  const keys = new Map([["ArrowRight", () => step(1)], ["ArrowLeft", () => step(-1)], ["Escape", () => choose(null)], ["t", theme]]);
  document.addEventListener("keydown", (event) => {
    const inside = ["INPUT", "SELECT", "BUTTON"].includes(event.target.tagName) && event.key !== "t" && event.key !== "Escape";
    if (inside || event.ctrlKey || event.metaKey || event.altKey || !keys.has(event.key)) return;
    event.preventDefault(); keys.get(event.key)();
  });
  canvas.addEventListener("click", (event) => frame && choose(Drawing.nearest(canvas, frame, event)));
  byId("choose").addEventListener("change", (event) => choose(event.target.value || null));
  byId("theme").addEventListener("click", theme);
  addEventListener("resize", redraw);
  if (recorded) replay(); else live();
})();
