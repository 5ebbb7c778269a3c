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

  function lamps(frame) {
    byId("lamps").replaceChildren(...frame.lamps.map((lamp) => {
      const item = made("li", lamp.name, lamp.state);
      const words = { good: "holds", once: "seen wrong once", broken: "broken" }[lamp.state];
      item.setAttribute("aria-label", `${lamp.name}: ${words}`);
      if (lamp.told) item.append(made("small", lamp.told));
      return item;
    }));
    if (!frame.lamps.length) byId("lamps").append(made("li", "nobody judged this run", "once"));
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
    const words = { ok: "knows of nothing wrong", doubts: "something is wrong here", silent: "does not answer" };
    const list = made("dl"), rows = [["state", words[node.state]], ["role", node.role], ...Object.entries(node.figures)];
    for (const [name, value] of rows) list.append(made("dt", name), made("dd", value));
    const number = frame.nodes.indexOf(node);
    const ends = frame.edges.filter(([a, b]) => a === number || b === number)
      .map(([a, b, kind]) => `${frame.nodes[a === number ? b : a].name} (${kind})`);
    list.append(made("dt", "drawn to"), made("dd", ends.join(", ") || "nobody"));
    place.replaceChildren(list, ...node.doubts.map((doubt) => made("p", doubt, "doubt")));
  }

  function topics(frame, choose) {
    const head = made("tr");
    head.append(...["topic", "members", "held", "charter"].map((name) => made("th", name)));
    const rows = frame.topics.map((topic) => {
      const row = made("tr", undefined, topic.legitimate ? "" : "broken"), cell = made("td"), button = made("button", topic.name);
      button.type = "button"; button.setAttribute("aria-pressed", topic.name === frame.topic);
      button.addEventListener("click", () => choose(topic.name));
      cell.append(button);
      row.append(cell, made("td", topic.members), made("td", topic.publications.toLocaleString("en")), made("td", topic.charter || "-"));
      return row;
    });
    byId("topics").replaceChildren(head, ...rows);
  }

  function happened(when, words) {
    const item = made("li");
    item.append(made("time", when), words);
    byId("events").prepend(item);
    while (byId("events").children.length > 100) byId("events").lastChild.remove();
  }

  return { byId, lamps, verdict, chooser, detail, topics, happened };
})();
