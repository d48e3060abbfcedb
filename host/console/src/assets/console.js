// The console's one script beside the library of charts: shows what the server says has changed. Every page works without
// it.
'use strict';

// A sentence for screen readers replaces another one after this time at the earliest.
const SAY_PAUSE_MS = 5000;
// A search begins when nothing was typed for this time.
const SEARCH_PAUSE_MS = 250;
// So long after an update a click is meant for what stood there before it: a person has not seen the new page yet.
const SETTLE_MS = 1000;

const live = document.getElementById('live');
const pause = document.getElementById('pause');
const said = document.getElementById('said');
let paused = false;
let source = null;

// Makes an element that is shown like a fresh one, and keeps what a person has done with it: focus,
// what is typed, what is open.
function morph(old, fresh) {
  if (old.nodeType !== fresh.nodeType || old.nodeName !== fresh.nodeName || old.id !== fresh.id) {
    old.replaceWith(fresh);
    return;
  }
  if (old.nodeType !== Node.ELEMENT_NODE) {
    if (old.nodeValue !== fresh.nodeValue) old.nodeValue = fresh.nodeValue;
    return;
  }
  const keepsOpen = old.nodeName === 'DETAILS';
  for (const { name } of [...old.attributes]) {
    if (!fresh.hasAttribute(name) && !(keepsOpen && name === 'open')) old.removeAttribute(name);
  }
  for (const { name, value } of [...fresh.attributes]) {
    const isShownByScript = name === 'hidden' && old.dataset.copy;
    if (old.getAttribute(name) !== value && !isShownByScript) old.setAttribute(name, value);
  }
  // What the script draws is none of the server's.
  if (!old.dataset || (!old.dataset.lines && !('drawn' in old.dataset))) morphChildren(old, fresh);
}

function morphChildren(old, fresh) {
  const byId = new Map([...old.children].filter(child => child.id).map(child => [child.id, child]));
  let next = old.firstChild;
  for (const child of [...fresh.childNodes]) {
    const same = child.id ? byId.get(child.id) : next && !next.id && next;
    if (!same) {
      old.insertBefore(child, next);
      continue;
    }
    if (same === next) next = next.nextSibling;
    else old.insertBefore(same, next);
    morph(same, child);
  }
  while (next) {
    const behind = next.nextSibling;
    next.remove();
    next = behind;
  }
}

// Markup comes from the console's own server, which escapes all texts of others.
function show(markup) {
  const holder = document.createElement('template');
  holder.innerHTML = markup;
  const fresh = holder.content.firstElementChild;
  const old = fresh && document.getElementById(fresh.id);
  if (old) morph(old, fresh);
}

// Buttons that decide something, what each decides, and where it stands in the window.
function decisions() {
  return [...document.querySelectorAll('main form[method="post"] button')].map(button => ({ does: decision(button), at: button.getBoundingClientRect() }));
}

// Fields that a person fills in are not part of it: they change while the same button stands there.
function decision(button) {
  const form = button.closest('form');
  const hidden = [...form.querySelectorAll('input[type="hidden"]')].map(({ name, value }) => [name, value]);
  return JSON.stringify([form.getAttribute('action'), hidden, button.name, button.value]);
}

let stood = [];
let settled = 0;
let scrolled = 0;
function update(parts) {
  const before = decisions();
  parts.forEach(show);
  drawCharts();
  showCount();
  // Most updates move no button.
  if (JSON.stringify(before) === JSON.stringify(decisions())) return;
  stood = before;
  settled = performance.now() + SETTLE_MS;
  // Where the browser has the page after the update, and not a person.
  scrolled = scrollY;
  requestAnimationFrame(() => { scrolled = scrollY; });
}

// A click on a button that has just come to where another one stood is meant for that one. Keys go with the focus, which stays.
// Who has scrolled since has seen what stands there now.
document.addEventListener('click', event => {
  const button = event.target.closest('main form[method="post"] button');
  if (!button || event.detail === 0 || performance.now() > settled || scrollY !== scrolled) return;
  const { clientX: x, clientY: y } = event;
  const before = stood.filter(({ at }) => at.left <= x && x <= at.right && at.top <= y && y <= at.bottom);
  if (before.length === 0 || before.some(({ does }) => does === decision(button))) return;
  event.preventDefault();
  event.stopImmediatePropagation();
  say('The page has just changed under the pointer, so nothing was done. Look again.');
}, true);

let saidAt = 0;
let toSay = null;
function say(sentence) {
  toSay = sentence;
  const wait = Math.max(0, saidAt + SAY_PAUSE_MS - Date.now());
  setTimeout(() => {
    if (toSay === null) return;
    said.textContent = toSay;
    toSay = null;
    saidAt = Date.now();
  }, wait);
}

function state(word, kind) {
  live.hidden = false;
  live.textContent = word;
  live.className = `chip ${kind}`;
}

// A page of calls that wait for a person goes on where nobody sees it: its title says how many there are.
const isLeft = () => document.hidden && !document.querySelector('#views a[href="/approvals"][aria-current]');
const title = document.title;

function showCount() {
  const count = document.querySelector('#views a[href="/approvals"] .badge');
  document.title = count ? `(${count.textContent}) ${title}` : title;
}

function listen() {
  if (source || paused || isLeft()) return;
  source = new EventSource(document.body.dataset.events);
  source.addEventListener('open', () => state('live', 'good'));
  source.addEventListener('update', event => {
    const { parts, say: sentence } = JSON.parse(event.data);
    update(parts);
    showButtons();
    if (sentence) say(sentence);
  });
  source.addEventListener('ended', () => {
    leave();
    state('ended', 'bad');
    say('The session has ended. Load the page anew.');
  });
  source.addEventListener('error', () => state(source && source.readyState === EventSource.CLOSED ? 'ended' : 'not connected', 'bad'));
}

function leave() {
  if (source) source.close();
  source = null;
}

// Charts of lines. The colours are those of the key beside the title, by the names that the style sheet has for them.
const LINES = {
  calls: { names: [' calls', ' errors', ' denials'], colours: ['--bar', '--bad', '--denied'], show: rate },
  time: { names: [' median', ' 99th'], colours: ['--bar', '--ask'], show: micros },
};
// A chart of less time than this has room on its left.
const SHORTEST_S = 300;
const drawn = new Map();

function rate(number) {
  return number >= 100 || Number.isInteger(number) ? number.toFixed(0) : number.toFixed(number < 10 ? 2 : 1);
}

function micros(number) {
  if (number === 0) return '0';
  const [size, unit] = number < 1e3 ? [1, 'µs'] : number < 1e6 ? [1e3, 'ms'] : [1e6, 's'];
  const scaled = number / size;
  return `${scaled < 10 && size > 1 ? scaled.toFixed(1).replace('.0', '') : scaled.toFixed(0)} ${unit}`;
}

const clock = seconds => new Date(seconds * 1000).toISOString().slice(11, 19);
const colour = name => () => getComputedStyle(document.documentElement).getPropertyValue(name);

function drawCharts() {
  for (const place of document.querySelectorAll('[data-lines]')) {
    const text = place.dataset.lines;
    const known = drawn.get(place);
    if (typeof uPlot === 'undefined') place.textContent = 'The library of charts did not load.';
    if (typeof uPlot === 'undefined' || (known && known.text === text)) continue;
    const { end, part, unit, lines } = JSON.parse(text);
    const times = lines[0].map((_, at) => end - part * (lines[0].length - 1 - at));
    if (times.length === 0) continue;
    if (known) {
      known.text = text;
      known.plot.setData([times, ...lines]);
    } else {
      place.replaceChildren();
      const plot = new uPlot(chart(place, LINES[unit]), [times, ...lines], place);
      drawn.set(place, { text, plot });
      new ResizeObserver(() => plot.setSize({ width: place.clientWidth, height: place.clientHeight })).observe(place);
    }
  }
}

function chart(place, { names, colours, show }) {
  const font = `11px ${getComputedStyle(place).fontFamily}`;
  const axis = { stroke: colour('--dim'), font, grid: { stroke: colour('--line'), width: 1 }, ticks: { show: false } };
  const at = document.getElementById(`${place.id}-at`);
  return {
    width: place.clientWidth,
    height: place.clientHeight,
    padding: [8, 18, 0, 0],
    legend: { show: false },
    cursor: { y: false, drag: { x: false, y: false } },
    scales: { x: { range: (_, from, to) => [Math.min(from, to - SHORTEST_S), to] }, y: { range: (_, __, most) => [0, most > 0 ? most * 1.1 : 1] } },
    axes: [
      { ...axis, size: 24, gap: 4, space: 55, incrs: [60, 120, 300, 600, 900, 1800, 3600], values: (_, splits) => splits.map(time => clock(time).slice(0, 5)) },
      { ...axis, size: 52, gap: 4, space: 26, values: (_, splits) => splits.map(show) },
    ],
    series: [{}, ...names.map((_, line) => ({ stroke: colour(colours[line]), width: 1.5, points: { size: 4 } }))],
    hooks: {
      setCursor: [({ cursor: { idx }, data }) => {
        const values = names.map((name, line) => [data[line + 1][idx], name]).filter(([value]) => typeof value === 'number');
        at.textContent = typeof idx === 'number' ? `${clock(data[0][idx])}: ${values.map(([value, name]) => show(value) + name).join(', ')}` : '';
      }],
    },
  };
}

matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => drawn.forEach(({ plot }) => plot.redraw()));

// Buttons that copy show only where they work.
function showButtons() {
  for (const button of document.querySelectorAll('[data-copy][hidden]')) button.hidden = !navigator.clipboard;
}

document.addEventListener('click', event => {
  const button = event.target.closest('[data-copy]');
  if (!button) return;
  const text = document.getElementById(button.dataset.copy);
  navigator.clipboard.writeText(text.textContent).then(() => say('Copied.'), () => say('It could not be copied.'));
});

// A search shows its results while a person types.
let typed = 0;
document.addEventListener('input', event => {
  const form = event.target.closest('form[data-live]');
  if (!form) return;
  const mine = (typed += 1);
  setTimeout(async () => {
    if (mine !== typed) return;
    const address = `${form.action}?${new URLSearchParams(new FormData(form))}`;
    const answer = await fetch(address, { credentials: 'same-origin' }).catch(() => null);
    if (!answer || !answer.ok || mine !== typed) return;
    const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
    const [old, fresh] = [document, page].map(whole => whole.getElementById(form.dataset.live));
    if (mine !== typed || !old || !fresh) return;
    morph(old, document.adoptNode(fresh));
    history.replaceState(null, '', address);
  }, SEARCH_PAUSE_MS);
});

if (document.body.dataset.events) {
  pause.hidden = false;
  pause.addEventListener('click', () => {
    paused = !paused;
    pause.textContent = paused ? 'Go on' : 'Pause';
    if (paused) {
      leave();
      state('paused', 'off');
    } else {
      listen();
    }
  });
  // Another page that nobody sees costs the server nothing.
  document.addEventListener('visibilitychange', () => (isLeft() ? leave() : listen()));
  window.addEventListener('pagehide', leave);
  window.addEventListener('pageshow', listen);
  showButtons();
  drawCharts();
  showCount();
  listen();
}
