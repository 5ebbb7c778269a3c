"use strict";
// The lists beside the picture. Text is always set as text: names come from other machines.
const Panels = (() => {
  const byId = (id) => document.getElementById(id);
  function made(tag, text, klass) {
    const element = document.createElement(tag);
    if (text !== undefined) element.textContent = text;
    if (klass) element.className = klass;
    return element;
  }

  const OVERLAYS = ["gossip", "content", "mobile"];

  function lamps(frame) {
    let last = "";
    const items = frame.lamps.flatMap((lamp) => {
      const first = lamp.name.split(" ")[0], group = OVERLAYS.includes(first) && lamp.name !== first ? first : "";
      const item = made("li", group ? lamp.name.slice(group.length + 1) : lamp.name, lamp.state);
      const words = { good: "holds", once: "seen wrong once", broken: "broken" }[lamp.state];
      item.setAttribute("aria-label", `${lamp.name}: ${words}`);
      if (lamp.detail) item.append(made("small", lamp.detail));
      const head = group !== last ? [made("li", group, "group")] : [];
      last = group;
      return [...head, item];
    });
    byId("lamps").replaceChildren(...items);
    if (!frame.lamps.length) byId("lamps").append(made("li", "nobody judged this run", "once"));
  }

  // What the lines and colours are that are drawn.
  function legend(frame) {
    const kinds = Object.keys(Drawing.LINES).filter((kind) => frame.edges.some((edge) => edge[2] === kind)).reverse();
    const words = kinds.map((kind) => made("span", Drawing.LINES[kind].words, `key ${kind}`));
    const roles = { supervisor: "supervisor", root: "root", sink: "may speak now" };
    for (const [role, name] of Object.entries(roles)) {
      if (frame.nodes.some((node) => node.role === role)) words.push(made("span", name, `key ${role}`));
    }
    for (const [state, it] of Object.entries(Drawing.STATES)) {
      if (frame.nodes.some((node) => node.state === state)) words.push(made("span", it.words, `key ${state}`));
    }
    if (frame.ends.length) words.push(made("span", "numbers: conditions known behind a link", "key"));
    if (frame.hidden) words.push(made("span", `${frame.hidden.toLocaleString("en")} more lines are not drawn`, "key"));
    byId("legend").replaceChildren(...words);
  }

  // What one look saw may be in flight; what two saw is wrong.
  function verdict(frame) {
    const named = (state) => frame.lamps.filter((lamp) => lamp.state === state).map((lamp) => lamp.name).join(", ");
    let [klass, text] = ["good", "legitimate"];
    if (frame.legitimate === null) [klass, text] = ["", "not judged"];
    else if (!frame.legitimate) [klass, text] = ["broken", `not legitimate: ${named("broken")}`];
    else if (named("once")) [klass, text] = ["once", `seen once: ${named("once")}`];
    byId("verdict").className = `verdict ${klass}`;
    byId("verdict").textContent = text;
  }

  function chooser(frame, chosen) {
    const select = byId("choose"), key = frame.nodes.map((node) => node.id + node.name).join();
    if (select.dataset.key !== key) {
      select.dataset.key = key;
      const options = frame.nodes.map((node) => new Option(node.name, node.id));
      select.replaceChildren(new Option("none", ""), ...options);
    }
    select.value = chosen ?? "";
  }

  function detail(frame, chosen) {
    const place = byId("detail"), node = frame.nodes.find((it) => it.id === chosen);
    if (!node) { place.replaceChildren(made("p", "Choose one to see its links, queues, store and doubts.", "hint")); return; }
    const words = {
      ok: "knows of nothing wrong", once: "seen out of place once, or in doubt", doubts: "out of place", silent: "does not answer",
    };
    const list = made("dl"), rows = [["state", words[node.state]], ["role", node.role], ...Object.entries(node.figures)];
    for (const [name, value] of rows) list.append(made("dt", name), made("dd", value));
    const number = frame.nodes.indexOf(node);
    const ends = frame.edges.filter(([a, b]) => a === number || b === number)
      .map(([a, b, kind]) => `${frame.nodes[a === number ? b : a].name} (${kind})`);
    const more = ends.length > 24 ? ` and ${ends.length - 24} more` : "";
    list.append(made("dt", "drawn to"), made("dd", ends.slice(0, 24).join(", ") + more || "nobody"));
    const here = frame.clients.filter((client) => client.node === number).map((client) => told(client));
    if (here.length) { list.append(made("dt", "connected"), made("dd")); list.lastChild.append(...here); }
    place.replaceChildren(list, ...node.doubts.map((doubt) => made("p", doubt, "doubt")));
  }

  // Whoever has the focus keeps it: an element that is taken out, if only to be put back, loses it.
  function focused(change) {
    const one = document.activeElement;
    change();
    if (one !== document.activeElement && one.isConnected) one.focus();
  }

  // Rows stay the same elements: whoever clicks, or came by keyboard, must not lose them each second.
  const rows = new Map();
  function topics(frame, choose) {
    const wanted = frame.topics.map((topic) => `${topic.overlay} ${topic.name}`), table = byId("topics");
    frame.topics.forEach((topic, i) => {
      const row = rows.get(wanted[i]) ?? rows.set(wanted[i], topicRow(topic, choose)).get(wanted[i]);
      row.className = topic.legitimate ? "" : "broken";
      row.querySelector("button").setAttribute("aria-pressed", topic.name === frame.topic && topic.overlay === frame.overlay);
      const held = topic.publications === null ? "-" : topic.publications.toLocaleString("en");
      [topic.members ?? "-", held, topic.charter || "-"].forEach((words, at) => { row.cells[at + 1].textContent = words; });
    });
    const chosen = frame.topics.find((topic) => topic.name === frame.topic && topic.overlay === frame.overlay);
    byId("charter").textContent = chosen?.laid_down ?? "";
    if (table.dataset.key === wanted.join("\n")) return;
    table.dataset.key = wanted.join("\n");
    const head = made("tr");
    head.append(...["topic", "members", "held", "charter"].map((name) => made("th", name)));
    focused(() => table.replaceChildren(head, ...wanted.map((key) => rows.get(key))));
  }

  function topicRow(topic, choose) {
    const row = made("tr"), cell = made("td"), button = made("button", topic.name);
    button.type = "button"; button.addEventListener("click", () => choose(topic));
    cell.append(button);
    if (topic.overlay !== "ring") cell.append(made("small", topic.overlay));
    row.append(cell, made("td"), made("td"), made("td"));
    return row;
  }

  // A client and what it does; `more` stands after its name.
  function told(client, ...more) {
    const item = made("div", undefined, client.behind ? "client behind" : "client"), head = made("p");
    head.append(made("b", client.name), ` ${client.address}`, ...more);
    item.append(head, ...client.does.map((words) => made("p", words)), made("p", client.figures, "hint"));
    return item;
  }

  // The buttons stay the same elements, as those of the topics.
  const items = new Map();
  function clients(frame, choose) {
    const wanted = frame.clients.map((client) => `${client.node} ${client.id}`), list = byId("clients");
    frame.clients.forEach((client, i) => {
      const old = items.get(wanted[i]) ?? { item: made("li"), button: made("button") };
      if (!items.has(wanted[i])) { old.button.type = "button"; old.button.addEventListener("click", () => choose(old.node)); }
      const node = frame.nodes[client.node];
      old.node = node.id; old.button.textContent = `at ${node.name}`;
      const words = JSON.stringify(client);
      if (old.words !== words) {
        old.words = words;
        focused(() => old.item.replaceChildren(told(client, " ", old.button)));
      }
      items.set(wanted[i], old);
    });
    for (const key of items.keys()) if (!wanted.includes(key)) items.delete(key);
    const every = frame.rates?.clients ?? 0, more = every - frame.clients.reduce((sum, it) => sum + it.connections, 0);
    byId("moreclients").textContent = more > 0 ? `${more.toLocaleString("en")} more connections are not listed` : every ? "" : "nobody is connected";
    if (list.dataset.key === wanted.join("\n")) return;
    list.dataset.key = wanted.join("\n");
    focused(() => list.replaceChildren(...wanted.map((key) => items.get(key).item)));
  }

  function happened(when, words) {
    const item = made("li");
    item.append(made("time", when), words);
    byId("events").prepend(item);
    while (byId("events").children.length > 100) byId("events").lastChild.remove();
  }

  return { byId, lamps, legend, verdict, chooser, detail, topics, clients, happened };
})();
