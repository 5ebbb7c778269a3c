"""A run as one HTML file that moves: places, directed links, turns, publications spreading."""

from typing import Protocol

from msgspec.json import encode

from planaria.simulator.worlds.mobile_book import ReachBook
from planaria.simulator.worlds.mobile_measures import Measures

PUBLICATIONS_SHOWN = 20  # a menu longer than this is no menu

_PAGE = """<!DOCTYPE html>
<html lang="en"><meta charset="utf-8"><title>Planaria: anonymous topics among moving nodes</title>
<style>
 body {font: 15px system-ui, sans-serif; margin: 1.5rem auto; max-width: 800px; color: #222}
 svg {width: 100%; background: #fafaf7; border: 1px solid #ddd; border-radius: 6px}
 .link {stroke: #9aa; stroke-width: 1.2} .link.used {stroke: #d9822b; stroke-width: 2}
 .node {fill: #fff; stroke: #456; stroke-width: 1.5} .has {fill: #f2b134}
 .publisher {stroke: #b3202a; stroke-width: 3}
 .ring {fill: none; stroke: #2a7f62; stroke-width: 2.5}
 .bar {display: flex; gap: .8rem; align-items: center; margin: .8rem 0} input {flex: 1}
 .key {list-style: none; padding: 0; columns: 2; line-height: 1.5}
 .key i {display: inline-block; width: .8em; height: .8em; border-radius: 50%; margin-right: .5em}
 .key i.line {height: 0; border-radius: 0; vertical-align: middle}
 text {font-size: 11px; fill: #567; pointer-events: none}
</style>
<h1 style="font-size: 1.2rem">Only sinks speak, then they turn their links around</h1>
<div class="bar"><button id="play">pause</button><input id="time" type="range" min="0" value="0">
<span id="second" style="min-width: 13.5em"></span><select id="which"></select></div>
<svg viewBox="-20 -20 740 740" id="picture"><defs><marker id="tip" viewBox="0 0 8 8" refX="7"
 refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0 8 4 0 8z" fill="#789"/>
</marker></defs><g id="links"></g><g id="nodes"></g></svg>
<ul class="key">
<li><i style="border: 2px solid #2a7f62"></i>had its turn in this second (neighbours one by one)
<li><i style="border: 2px solid #b3202a"></i>published it (nobody in the network knows this)
<li><i style="background: #f2b134"></i>has the publication
<li><i class="line" style="border-top: 2px solid #d9822b"></i>only one end has it
<li><i class="line" style="border-top: 2px solid #9aa"></i>a link, at the start of the second; it
points to the end whose turn comes first
</ul>
<script>
const DATA = /*DATA*/, NS = 'http://www.w3.org/2000/svg', $ = id => document.getElementById(id);
const R = DATA.pictures.length && Object.keys(DATA.pictures[0].places).length > 60 ? 5 : 8;
$('time').max = Math.max(0, DATA.pictures.length - 1);
DATA.publications.forEach((p, i) =>
  $('which').add(new Option('publication ' + i + ', second ' + p.second, i)));
$('which').hidden = !DATA.publications.length;
function add(parent, kind, set) {
  const e = document.createElementNS(NS, kind);
  for (const [k, v] of Object.entries(set)) e.setAttribute(k, v);
  return parent.appendChild(e);
}
function draw(i) {
  const f = DATA.pictures[i], p = DATA.publications[$('which').value];
  if (!f) { $('second').textContent = 'too many nodes for pictures'; return; }
  const ids = Object.keys(f.places);
  $('time').value = i; $('second').textContent = 'second ' + f.second;
  const turns = DATA.turned[f.second] || [], at = id => f.places[id].map(v => 700 * v);
  const has = id => p && p.arrivals[id] !== undefined && p.arrivals[id] <= f.second;
  $('links').replaceChildren(); $('nodes').replaceChildren();
  for (const [high, low] of f.links) {
    const [x1, y1] = at(high), [x2, y2] = at(low), d = Math.hypot(x2 - x1, y2 - y1) || 1;
    const cut = (R + 3) / d;
    add($('links'), 'line', {class: has(high) !== has(low) ? 'link used' : 'link', x1: x1, y1: y1,
      x2: x2 - (x2 - x1) * cut, y2: y2 - (y2 - y1) * cut, 'marker-end': 'url(#tip)'});
  }
  if (p) $('second').textContent += `, ${ids.filter(has).length} of ${ids.length} have it`;
  for (const id of ids) {
    const [cx, cy] = at(id), mine = p && p.publisher == id && f.second >= p.second;
    if (turns.includes(+id)) add($('nodes'), 'circle', {class: 'ring', cx, cy, r: R + 4});
    const c = add($('nodes'), 'circle', {cx, cy, r: R,
      class: 'node' + (has(id) ? ' has' : '') + (mine ? ' publisher' : '')});
    add(c, 'title', {}).textContent = 'node ' + id;
    if (ids.length <= 40) add($('nodes'), 'text', {x: cx + R + 4, y: cy - R}).textContent = id;
  }
}
let now = 0, playing = true;
function run(yes) { playing = yes; $('play').textContent = yes ? 'pause' : 'play'; }
$('time').oninput = e => { run(false); draw(now = +e.target.value); };
$('which').onchange = () => draw(now);
$('play').onclick = () => run(!playing);
const start = location.hash.slice(1);
if (start) { now = Math.min(+start, DATA.pictures.length - 1); run(false); }
draw(now);
setInterval(() => {
  if (playing && DATA.pictures.length) draw(now = (now + 1) % DATA.pictures.length);
}, 350);
</script></html>
"""


class Seen(Protocol):
    """A world after a run."""

    book: ReachBook
    measures: Measures


def animation(world: Seen) -> str:
    """One page that shows every second of a run; `#30` in its address starts at a frame."""
    book, measures = world.book, world.measures
    publications = [
        {
            "publisher": it.node,
            "second": int(it.time),
            "arrivals": {id: int(when) for id, when in book.holders(it).items()},
        }
        for it in list(book.published.values())[:PUBLICATIONS_SHOWN]
    ]
    data = {
        "pictures": [
            {
                "second": it.second,
                "places": {id: (round(x, 4), round(y, 4)) for id, (x, y) in it.places.items()},
                "links": it.links,
            }
            for it in measures.pictures
        ],
        "publications": publications,
        "turned": measures.turned,
    }
    return _PAGE.replace("/*DATA*/", encode(data).decode())
