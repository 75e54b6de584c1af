// The review page. All offsets here are UTF-16 units, as the browser counts them; the server converts them.
"use strict";

const $ = (id) => document.getElementById(id);
const box = $("text");
const HUES = 9;
const SAID = { todo: "to do", done: "done", skip: "unsure" };

let state = null;   // of the file
let record = null;  // the one that is shown
let kind = null;    // that new marks get
let leaves = [];    // elements that hold the text, in order
let picked = null;  // last selection in the text: a tap on a button takes the focus, and with it the selection
let waiting = Promise.resolve();
let moving = false; // to another record: until it is shown, no key may judge it
let skipped = new Set(); // records left for later: whoever asks for the next gets the others first
let warned = "";    // the selection that was pointed out as not marked

async function ask(path, change) {
  const options = change && {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(change),
  };
  let answer;
  try {
    answer = await fetch(path, options);
  } catch {
    throw new Error("taciturn review does not answer: it was stopped. Start it again; everything up to here is saved.");
  }
  const json = (answer.headers.get("content-type") || "").startsWith("application/json");
  const said = json ? await answer.json() : { error: await answer.text() };
  if (said.record) record = said.record;
  if (said.state) state = said.state;
  if (!answer.ok) throw new Error(said.error);
  return said;
}

// One thing after the other: a key pressed while the last change is on its way waits for its answer.
function enqueue(work) {
  waiting = waiting.then(async () => {
    try {
      $("error").hidden = true;
      await work();
    } catch (error) {
      if (record) show();
      $("error").textContent = error.message;
      $("error").hidden = false;
    }
  });
  return waiting;
}

function move(work) {
  if (moving) return;
  moving = true;
  enqueue(async () => { try { await work(); } finally { moving = false; } });
}

function tell(words) { $("said").textContent = words; }

// ---- what is shown

function element(name, attributes = {}, ...inside) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...inside);
  return made;
}

function hue(name) { return "k" + (Math.max(0, state.kinds.indexOf(name)) % HUES); }

function leaf(said, at, width, escaped) {
  const made = element(escaped ? "i" : "span", escaped ? { class: "esc", "data-width": width } : {}, said);
  made.dataset.at = at;
  leaves.push(made);
  return made;
}

// The runs of the text from one offset to another.
function stretch(start, end) {
  const made = [];
  let at = 0;
  for (const [said, width, escaped] of record.runs) {
    const from = Math.max(at, start), to = Math.min(at + width, end);
    if (from < to) made.push(escaped ? leaf(said, at, width, true) : leaf(said.slice(from - at, to - at), from, 0, false));
    at += width;
  }
  return made;
}

function plain(start, end) {
  let at = 0, said = "";
  for (const [text, width, escaped] of record.runs) {
    const from = Math.max(at, start), to = Math.min(at + width, end);
    if (from < to) said += escaped ? text : text.slice(from - at, to - at);
    at += width;
  }
  return said;
}

// Spans may overlap in a file made by hand: a later one is then shown from where the earlier one ends.
function showText() {
  leaves = [];
  const pieces = [];
  let at = 0;
  for (const span of record.spans) {
    const start = Math.max(span.start, at);
    if (start >= span.end) continue;
    pieces.push(...stretch(at, start));
    pieces.push(element("mark", { class: hue(span.kind), "data-kind": span.kind }, ...stretch(start, span.end)));
    at = span.end;
  }
  pieces.push(...stretch(at, record.units));
  box.replaceChildren(...pieces);
}

function words(runs) {
  return runs.map(([said, escaped]) => (escaped ? element("i", { class: "esc" }, said) : said));
}

// To be read, not marked: it is another record, or none.
function showAround(section, texts) {
  section.hidden = texts.length === 0;
  section.replaceChildren(...texts.map((runs) => element("p", { dir: "auto" }, ...words(runs))));
}

function showMarks() {
  $("none").hidden = record.spans.length > 0;
  $("marks").replaceChildren(...record.spans.map((span) => {
    const said = plain(span.start, span.end);
    const choose = element("select", { "aria-label": `Kind of ${said}` });
    for (const name of state.kinds) choose.append(new Option(name, name, name === span.kind, name === span.kind));
    choose.addEventListener("change", () => change({ op: "rename", start: span.start, end: span.end, kind: choose.value },
      `Now ${choose.value}.`, choose));
    const remove = element("button", { type: "button", "aria-label": `Remove the mark ${said}` }, "Remove");
    remove.addEventListener("click", () => change({ op: "remove", start: span.start, end: span.end }, "Mark removed."));
    return element("li", {}, element("q", { dir: "auto" }, said), choose, remove);
  }));
}

function showKinds() {
  kind = state.kinds.includes(kind) ? kind : state.kinds[0];
  $("kinds").replaceChildren(...state.kinds.map((name, number) => {
    const key = number < 9 ? [element("kbd", { "aria-hidden": "true" }, String(number + 1))] : [];
    const button = element("button", { type: "button", class: hue(name), "aria-pressed": name === kind }, ...key, name);
    button.addEventListener("click", () => { choose(name); box.focus({ preventScroll: true }); });
    return button;
  }));
}

function showState() {
  const { done, skip, todo } = state.counts;
  $("title").textContent = state.mode === "labels" ? "Label the secrets" : "Correct the redactions";
  $("file").textContent = state.file + (state.reviewer ? `, ${state.reviewer}` : "");
  $("bar").max = state.total;
  $("bar").value = done + skip;
  $("progress").textContent = `${done} of ${state.total} done, ${skip} unsure, ${todo} to do`;
}

function show(caret) {
  const place = caret ?? (picked ? picked.end : 0);
  showText();
  showMarks();
  showKinds();
  showState();
  $("where").textContent = `Record ${record.at + 1} of ${state.total}`;
  $("status").textContent = SAID[record.status];
  $("status").className = `badge ${record.status}`;
  $("id").textContent = record.id;
  showAround($("before"), record.before);
  showAround($("after"), record.after);
  $("undo").disabled = state.changes === 0;
  $("redacted").hidden = record.redacted === null;
  $("masked").replaceChildren(...words(record.redacted || []));
  $("previous").disabled = record.at === 0;
  $("next").disabled = record.at === state.total - 1;
  $("done").textContent = record.status === "done" ? "Done, go on" : "Done";
  history.replaceState(null, "", `#${record.at + 1}`);
  setCaret(place);
}

async function showBound() {
  if (!state.bound) return;
  const line = $("bound");
  line.hidden = false;
  let found;
  try {
    found = await ask("/bound");
  } catch (error) {
    line.textContent = `No bound: ${error.message}`;
    return;
  }
  if (found.delta2 === null) {
    line.textContent = "No bound yet: no record with a secret is labelled.";
    return;
  }
  line.replaceChildren(
    element("strong", {}, `δ₂ ≤ ${found.said.delta2}, γ ≤ ${found.said.gamma}`),
    ` at ${100 * found.confidence} %: of ${found.records} ${found.records === 1 ? "record" : "records"} with a secret, ` +
    `both policies miss ${found.missed_by_both} and π ${found.missed_by_pi}. ` +
    "It holds if how many to label was decided before: do not stop because of it.",
  );
}

// ---- selections

function offsetOf(node, offset, isEnd) {
  const parent = node.nodeType === Node.TEXT_NODE ? node.parentElement : null;
  if (parent && parent.dataset.at !== undefined && box.contains(parent)) {
    const at = Number(parent.dataset.at), width = Number(parent.dataset.width || 0);
    return width ? at + (isEnd && offset > 0 ? width : 0) : at + offset;
  }
  const point = document.createRange();
  point.setStart(node, offset);
  const after = leaves.find((each) => point.comparePoint(each, 0) >= 0);
  return after ? Number(after.dataset.at) : record.units;
}

function selection() {
  const now = document.getSelection();
  if (!now.rangeCount || !record) return null;
  const range = now.getRangeAt(0);
  if (!box.contains(range.startContainer) && !box.contains(range.endContainer)) return null;
  return { start: offsetOf(range.startContainer, range.startOffset, false),
           end: range.collapsed ? offsetOf(range.startContainer, range.startOffset, false)
                                : offsetOf(range.endContainer, range.endOffset, true) };
}

function setCaret(at) {
  picked = { start: at, end: at };
  if (document.activeElement !== box || !leaves.length) return;
  const inside = leaves.findLast((each) => Number(each.dataset.at) <= at) || leaves[0];
  const text = inside.firstChild;
  const offset = Math.min(text.length, inside.dataset.width ? (at > Number(inside.dataset.at) ? text.length : 0)
                                                            : at - Number(inside.dataset.at));
  document.getSelection().collapse(text, offset);
}

function pick() {
  const now = document.activeElement === box ? selection() : null;
  if (now) picked = now;
}

document.addEventListener("selectionchange", pick);

// Nothing can be typed: what an input method changes all the same is put back.
for (const name of ["beforeinput", "drop", "paste", "cut", "dragstart"]) {
  box.addEventListener(name, (event) => event.preventDefault());
}
box.addEventListener("input", () => show());

// ---- what a reviewer does

function change(what, words, focus = box) {
  const place = what.end;
  return enqueue(async () => {
    await ask(`/records/${record.at}`, { revision: record.revision, ...what });
    show(place);
    if (focus === box) { box.focus({ preventScroll: true }); setCaret(place ?? 0); }
    tell(words);
    if (what.op === "status" || record.status !== "todo") showBound();
  });
}

const touching = (at) => record.spans.some((s) => at.start === at.end
  ? s.start <= at.start && at.start <= s.end
  : s.start < at.end && at.start < s.end);

function mark() {
  if (!picked || picked.start === picked.end) return tell("Select a secret first.");
  change({ op: "add", ...picked, kind }, `Marked as ${kind}.`);
}

function choose(name) {
  kind = name;
  for (const button of $("kinds").children) button.setAttribute("aria-pressed", button.lastChild.textContent === name);
  if (picked && picked.start !== picked.end) mark();
  else if (picked && touching(picked)) change({ op: "rename", ...picked, kind }, `Now ${kind}.`);
  else tell(`Kind: ${kind}.`);
}

function unmark() {
  if (!picked || !touching(picked)) return tell("No mark here.");
  change({ op: "remove", ...picked }, "Mark removed.");
}

function judge(status) {
  const selected = picked && picked.start !== picked.end ? `${record.at} ${picked.start} ${picked.end}` : "";
  if (status === "done" && selected !== warned && selected) {
    warned = selected;
    $("error").textContent = "The selection is not marked. Enter marks it; “Done” again leaves it so.";
    $("error").hidden = false;
    return;
  }
  move(async () => {
    const next = record.next_todo;
    await ask(`/records/${record.at}`, { revision: record.revision, op: "status", status });
    showBound();
    const said = `Record ${record.at + 1} ${SAID[status]}.`;
    if (status === "todo") { show(); tell(said); return; }
    const to = next !== null && next !== record.at ? next : Math.min(record.at + 1, state.total - 1);
    await open(to);
    tell(state.counts.todo ? said : `${said} Nothing is left to do.`);
  });
}

function undo() {
  if (!state.changes) return tell("Nothing to undo.");
  move(async () => {
    const here = record.at;
    await ask(`/records/${here}`, { revision: record.revision, op: "undo", changes: state.changes });
    if (record.at === here) show(); else { picked = null; show(0); }
    box.focus({ preventScroll: true });
    showBound();
    tell(`Undone: record ${record.at + 1} is ${SAID[record.status]}.`);
  });
}

// A record that is skipped stays to do, so that it counts as unsure until somebody comes back to it.
function skip() {
  if (record.status !== "todo") return tell("This record is judged; r puts it back to do.");
  const number = record.at + 1;
  skipped.add(record.at);
  move(async () => {
    for (let next = record.next_todo, looked = 0; next !== null && looked < state.total; next = record.next_todo, looked++) {
      if (next === number - 1) break;
      await ask(`/records/${next}`);
      if (!skipped.has(next)) break;
    }
    if (skipped.has(record.at)) skipped = new Set(); // all of the rest were skipped: now they come back
    await open(record.at === number - 1 && record.next_todo !== null ? record.next_todo : record.at);
    tell(`Record ${number} skipped: it stays to do.`);
  });
}

function guide() { $("guide").open = !$("guide").open; tell($("guide").open ? "Guidelines shown." : "Guidelines closed."); }

async function open(at) {
  await ask(`/records/${at}`);
  picked = null;
  box.scrollTop = 0;
  box.focus({ preventScroll: true });
  show(0);
  window.scrollTo(0, 0);
}

function go(at) {
  if (at === null || at < 0 || at >= state.total) return tell("No further record there.");
  move(async () => { await open(at); tell(`Record ${at + 1}, ${SAID[record.status]}.`); });
}

const KEYS = {
  n: () => go(record.at + 1), p: () => go(record.at - 1), t: () => go(record.next_todo),
  d: () => judge("done"), u: () => judge("skip"), r: () => judge("todo"),
  s: skip, z: undo, g: guide,
  x: unmark, Delete: unmark, Backspace: unmark, Enter: mark,
};

// Keys of one letter work only while the text has the focus, so that they cannot meet those of a screen reader or a form.
box.addEventListener("keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey && event.key === "z" && record) {
    event.preventDefault();
    if (!moving && !event.repeat) undo();
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || !record) return;
  const number = /^[1-9]$/.test(event.key) ? Number(event.key) - 1 : -1;
  const act = KEYS[event.key] || (number >= 0 && number < state.kinds.length && (() => choose(state.kinds[number])));
  if (!act) return;
  event.preventDefault();
  pick();  // the event that tells of a new selection may still be on its way
  if (!moving && !event.repeat) act();
});

$("previous").addEventListener("click", () => go(record.at - 1));
$("next").addEventListener("click", () => go(record.at + 1));
$("remove").addEventListener("click", () => { unmark(); });
$("undo").addEventListener("click", () => undo());
$("skip").addEventListener("click", () => skip());
$("unsure").addEventListener("click", () => judge("skip"));
$("done").addEventListener("click", () => judge("done"));

// The number of the record stands in the address, so that a reload stays where it was.
function asked(otherwise) {
  const at = Number(location.hash.slice(1)) - 1;
  return Number.isInteger(at) && at >= 0 && at < state.total ? at : otherwise;
}

window.addEventListener("hashchange", () => { if (record && asked(record.at) !== record.at) go(asked(record.at)); });

enqueue(async () => {
  const { first, guidelines } = await ask("/state");
  $("guidelines").replaceChildren(...words(guidelines));
  await open(asked(first));
  showBound();
});
