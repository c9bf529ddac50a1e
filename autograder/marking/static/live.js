"use strict";
// Shows the class's results on a projector. Nothing of a group comes from the server before the lecturer reveals it.
const byId = (id) => document.getElementById(id);
const shown = {};
let state = { questions: [], graded: null };
let current = 0;
let drawn = "";
let asked = 0;

function make(kind, text = "", className = "") {
  const element = document.createElement(kind);
  element.textContent = text;
  if (className) element.className = className;
  return element;
}

function drawBar(parts) {
  const bar = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const total = parts.reduce((sum, part) => sum + part.count, 0);
  const label = parts.map((part) => `${part.count} with ${part.name} points`).join(", ");
  bar.setAttribute("viewBox", "0 0 100 6");
  bar.setAttribute("preserveAspectRatio", "none");
  bar.setAttribute("aria-hidden", "true");
  let start = 0;
  parts.forEach((part) => {
    const piece = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    const width = (100 * part.count) / total;
    const kind = part.name.includes(" or ") ? "mixed" : part.name;
    Object.entries({ x: start, y: 0, width, height: 6, class: `part-${kind}` }).forEach(([key, value]) => piece.setAttribute(key, value));
    bar.append(piece);
    start += width;
  });
  const box = make("div", "", "bar");
  box.append(bar, make("p", label || "fewer than 3 answers", "counts"));
  return box;
}

function drawQuestions() {
  byId("questions").replaceChildren(...state.questions.map((question, at) => {
    const item = make("li");
    const button = make("button", question.title, "title");
    button.type = "button";
    if (at === current) button.setAttribute("aria-current", "true");
    button.addEventListener("click", () => { current = at; draw(); });
    item.append(button, drawBar(question.bar));
    return item;
  }));
}

function drawGroup(group) {
  const box = make("article");
  box.append(make("h3", `${group.count} answers`));
  group.diagnoses.forEach((text) => box.append(make("p", text, "diagnosis")));
  if (group.follows_from) box.append(make("p", `Follows from ${group.follows_from}`));
  if (group.error) box.append(make("p", "The code stopped with an error."));
  const rows = make("ul", "", "rows");
  group.rows.forEach((title) => rows.append(make("li", title)));
  box.append(rows);
  return box;
}

function drawDetail() {
  const question = state.questions[current];
  if (!question) { byId("detail").replaceChildren(); return; }
  const rest = question.hidden_groups;
  const parts = [make("h2", question.title), ...question.groups.map(drawGroup)];
  if (question.rows.length) {
    const rows = make("ul", "", "rows");
    question.rows.forEach((row) => rows.append(make("li", `${row.count}: ${row.title}`)));
    parts.push(make("h3", "Rows that failed"), rows);
  }
  const groups = (count) => `${count} ${count === 1 ? "group" : "groups"} of 3 answers or more`;
  parts.push(make("p", rest ? `${groups(rest)} not shown yet` : question.groups.length ? "All groups are shown." : "No group of 3 answers or more.", "note"));
  byId("detail").replaceChildren(...parts);
  byId("reveal").disabled = !rest;
  byId("conceal").disabled = !(shown[question.name] > 0);
}

function draw() {
  const now = JSON.stringify([state, current, shown]);
  if (now === drawn) return;
  drawn = now;
  const at = document.activeElement?.closest?.("#questions li");
  const index = at ? [...byId("questions").children].indexOf(at) : -1;
  byId("graded").textContent = state.graded === null ? "Fewer than 3 submissions are graded" : `${state.graded} submissions are graded`;
  drawQuestions();
  drawDetail();
  if (index >= 0) byId("questions").children[index]?.querySelector("button").focus();
}

async function load() {
  const number = (asked += 1);
  try {
    const response = await fetch(`/state?shown=${encodeURIComponent(JSON.stringify(shown))}`);
    if (!response.ok) throw new Error();
    const answer = await response.json();
    if (number !== asked) return;
    state = answer;
    byId("status").textContent = "";
  } catch { byId("status").textContent = "Not updated: the server does not answer."; }
  draw();
}

function reveal(by) {
  const question = state.questions[current];
  if (!question) return;
  const most = question.groups.length + question.hidden_groups;
  shown[question.name] = Math.max(0, Math.min(most, (shown[question.name] || 0) + by));
  load();
}

function move(by) {
  current = Math.max(0, Math.min(state.questions.length - 1, current + by));
  draw();
}

byId("previous").addEventListener("click", () => move(-1));
byId("next").addEventListener("click", () => move(1));
byId("reveal").addEventListener("click", () => reveal(1));
byId("conceal").addEventListener("click", () => reveal(-1));
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const act = { j: () => move(1), k: () => move(-1), r: () => reveal(1), h: () => reveal(-1) }[event.key];
  if (act) { event.preventDefault(); act(); }
});
load();
setInterval(load, 4000);
