"use strict";
const byId = (id) => document.getElementById(id);
const articles = [...document.querySelectorAll("article")];
const items = [...document.querySelectorAll("#form .item")].map((row) => ({ row, tick: row.querySelector("input"), half: row.querySelector(".half") }));
const name = byId("question").dataset.name;
const xsrf = document.querySelector("meta[name=xsrf]").content;
const maximum = Number(byId("points").dataset.maximum);
// A key ticks an item, then half of it, then none of it.
const NEXT_SHARE = { 0: 1, 1: 0.5, 0.5: 0 };
const store = `given ${name}`;
// A page of code answers loads members.js as well.
const hasMembers = typeof chosenMembers === "function";
let current = -1;
let busy = false;

function say(text, wrong = false) {
  byId("status").textContent = text;
  byId("status").classList.toggle("wrong", wrong);
}

const shareOf = ({ tick, half }) => (tick.checked ? (half.getAttribute("aria-pressed") === "true" ? 0.5 : 1) : 0);
const shares = () => items.map(shareOf);

function setShare({ row, tick, half }, share) {
  tick.checked = share > 0;
  half.setAttribute("aria-pressed", String(share === 0.5));
  row.classList.toggle("halved", share === 0.5);
}

// Ticks an item as a marker does: the points follow.
function tickItem(item, share) {
  setShare(item, share);
  const sum = items.reduce((total, each) => total + shareOf(each) * Number(each.tick.value), 0);
  byId("points").value = String(Math.min(Number(sum.toFixed(6)), maximum));
}

function select(index, focus = true) {
  if (!articles.length) return;
  const to = Math.max(0, Math.min(articles.length - 1, index));
  if (current >= 0) keepDraft();
  articles.forEach((article, at) => article.classList.toggle("current", at === to));
  current = to;
  const article = articles[to];
  const draft = article.draft || { points: article.dataset.points, comment: article.dataset.comment, shares: JSON.parse(article.dataset.shares || "[]") };
  byId("points").value = draft.points;
  byId("comment").value = draft.comment;
  items.forEach((item, at) => setShare(item, draft.shares[at] || 0));
  countChosen(article);
  byId("current").textContent = `Mark for ${article.dataset.name}`;
  if (focus) {
    article.focus({ preventScroll: true });
    article.scrollIntoView({ block: "nearest" });
  }
}

const membersOf = (article) => (hasMembers ? chosenMembers(article) : JSON.parse(article.dataset.members));

function countChosen(article) {
  const count = Object.keys(membersOf(article)).length;
  byId("give").textContent = count === 1 ? "Give" : `Give to ${count}`;
}

function keepDraft() {
  articles[current].draft = { points: byId("points").value, comment: byId("comment").value, shares: shares() };
}

async function post(address, data) {
  const headers = { "Content-Type": "application/json", "X-XSRFToken": xsrf };
  say("Saving …");
  let answer;
  let found;
  try {
    answer = await fetch(address, { method: "POST", headers, body: JSON.stringify(data) });
    found = await answer.json();
  } catch { throw new Error("Not saved: the server does not answer. Is tfcourse mark still running?"); }
  if (!answer.ok) throw new Error(found.error);
  return found;
}

async function alone(work) {
  if (busy) return;
  busy = true;
  byId("give").setAttribute("aria-disabled", "true");
  try { await work(); } catch (error) { say(error.message, true); } finally {
    busy = false;
    byId("give").removeAttribute("aria-disabled");
  }
}

function rememberComment(comment) {
  const list = byId("earlier");
  if (!comment || [...list.options].some((option) => option.value === comment)) return;
  list.append(new Option(comment.slice(0, 60), comment));
  list.closest("p").hidden = false;
}

// Whether the page could not show how an answer was ticked, and the marker ticks nothing: then what was ticked stays.
function showsOldMark(article, ticked) {
  return article.dataset.points !== "" && !ticked.some(Boolean) && !JSON.parse(article.dataset.shares || "[]").length;
}

async function give() {
  if (!articles.length || !byId("points").reportValidity()) return;
  const at = current;
  const article = articles[at];
  const members = membersOf(article);
  const count = Object.keys(members).length;
  if (!count) { say("Choose at least one member.", true); return; }
  const text = byId("points").value.trim();
  const comment = byId("comment").value;
  const ticked = shares();
  if (text === "" && !comment.trim() && !article.dataset.comment && hasMembers) { say("Enter points or a comment.", true); return; }
  const found = await post(`/question/${name}/give`, {
    members, points: text, comment, ticks: showsOldMark(article, ticked) ? null : ticked, rubric: document.querySelector("[data-rubric]")?.dataset.rubric,
  });
  // The server reads the number: a decimal comma is as good as a point.
  const points = found.points;
  const done = points === null ? (comment.trim() ? "Comment kept" : "Comment removed") : `${points} points`;
  const size = Object.keys(JSON.parse(article.dataset.members)).length;
  // What was given to some is no proposal for the members that were taken out.
  article.dataset.points = count < size || points === null ? "" : String(points);
  article.dataset.comment = count < size ? "" : comment.trim();
  if (points !== null) article.dataset.shares = JSON.stringify(ticked);
  if (hasMembers) {
    article.dataset.waiting = updateMembers(article, found);
    choose(article, (row) => row.dataset.open === "1" || article.dataset.waiting === "0");
  } else {
    article.dataset.members = JSON.stringify(found.members);
    if (points !== null) article.dataset.waiting = 0;
  }
  article.querySelector(".state").textContent = count < size ? `${done} for ${count} of ${size}` : done;
  sessionStorage.setItem(store, JSON.stringify([...given(), found.entry]));
  byId("waiting").textContent = found.waiting;
  byId("progress").value = byId("progress").max - found.waiting;
  const some = count < size ? `${count} of ${size}` : "";
  const result = points === null ? `${done.toLowerCase()}${some && ` for ${some}`}` : `${done} given${some && ` to ${some}`}`;
  say(`${article.dataset.name}: ${result}`);
  article.draft = null;
  rememberComment(comment.trim());
  if (current !== at) return;
  current = -1;
  const open = (candidate) => Number(candidate.dataset.waiting) > 0;
  const later = articles.findIndex((candidate, index) => index >= at && open(candidate));
  select(later >= 0 ? later : Math.max(at, articles.findIndex(open)));
}

const given = () => JSON.parse(sessionStorage.getItem(store) || "[]");

async function undo() {
  const entries = given();
  if (!entries.length) { say("This page has given nothing that could be undone. The history has earlier marks."); return; }
  const found = await post("/undo", { entry: entries.at(-1) });
  sessionStorage.setItem(store, JSON.stringify(entries.slice(0, -1)));
  sessionStorage.setItem("message", found.skipped
    ? `Undone for ${found.undone}; ${found.skipped} changed since and left as they are.` : `Undone for ${found.undone}.`);
  sessionStorage.setItem("at", current);
  location.reload();
}

function openMembers() {
  const list = articles[current]?.querySelector("details.members");
  if (!list) return;
  list.open = !list.open;
  (list.open ? list.querySelector("input") : articles[current]).focus();
}

items.forEach((item) => {
  item.tick.addEventListener("change", () => tickItem(item, item.tick.checked ? 1 : 0));
  item.half.addEventListener("click", () => tickItem(item, shareOf(item) === 0.5 ? 0 : 0.5));
});
articles.forEach((article, at) => {
  article.addEventListener("click", (event) => { if (at !== current) select(at, !event.target.closest("a, button, input, summary")); });
  article.addEventListener("chosen", () => { if (at === current) countChosen(article); });
});
byId("form").addEventListener("submit", (event) => { event.preventDefault(); alone(give); });
byId("previous").addEventListener("click", () => select(current - 1, false));
byId("next").addEventListener("click", () => select(current + 1, false));
byId("undo").addEventListener("click", () => alone(undo));
byId("help").addEventListener("click", () => byId("keys").showModal());
byId("earlier").addEventListener("change", (event) => { byId("comment").value = event.target.value; });

document.addEventListener("keydown", (event) => {
  if (byId("keys").open) return;
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); alone(give); return; }
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const typing = event.target.matches("textarea, select, #points");
  if (typing) { if (event.key === "Escape") articles[current]?.focus(); return; }
  const act = {
    j: () => select(current + 1), k: () => select(current - 1), u: () => alone(undo),
    p: () => { byId("points").focus(); byId("points").select(); }, c: () => byId("comment").focus(),
    m: hasMembers ? openMembers : null,
    "?": () => byId("keys").showModal(),
  }[event.key] || (/^[1-9]$/.test(event.key) && items[event.key - 1] ? () => tickItem(items[event.key - 1], NEXT_SHARE[shareOf(items[event.key - 1])]) : null);
  if (act) { event.preventDefault(); act(); }
});

const at = sessionStorage.getItem("at");
sessionStorage.removeItem("at");
select(at === null ? Math.max(0, articles.findIndex((article) => Number(article.dataset.waiting) > 0)) : Number(at), at !== null);
say(sessionStorage.getItem("message") || "");
sessionStorage.removeItem("message");
