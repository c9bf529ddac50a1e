"use strict";
// The members of a group of code answers: who gets the mark, and each member's code on request.
const memberRows = (article) => [...article.querySelectorAll("li[data-member]")];
const box = (row) => row.querySelector("input");

// Returns the versions of the chosen members; a page without a list of members always means all of them.
function chosenMembers(article) {
  const all = JSON.parse(article.dataset.members);
  const rows = memberRows(article);
  if (!rows.length) return all;
  return Object.fromEntries(rows.filter((row) => box(row).checked).map((row) => [row.dataset.member, all[row.dataset.member]]));
}

function choose(article, wanted) {
  memberRows(article).forEach((row) => { box(row).checked = wanted(row); });
  article.dispatchEvent(new Event("chosen"));
}

// Writes what the server answered about some members into their rows, and returns how many of the group still wait.
function updateMembers(article, answer) {
  article.dataset.members = JSON.stringify({ ...JSON.parse(article.dataset.members), ...answer.members });
  const rows = memberRows(article);
  rows.filter((row) => row.dataset.member in answer.members).forEach((row) => {
    row.querySelector(".member-state").textContent = answer.states[row.dataset.member];
    row.dataset.open = Number(answer.open.includes(row.dataset.member));
  });
  return rows.filter((row) => row.dataset.open === "1").length;
}

function addBlock(row, title, lines, kind) {
  const block = document.createElement("pre");
  block.className = kind;
  block.tabIndex = 0;
  block.setAttribute("aria-label", title);
  lines.forEach((line) => {
    const part = document.createElement("span");
    part.textContent = `${line}\n`;
    if (kind === "difference") part.className = { "+": "added", "-": "removed", "@": "position" }[line[0]] || "";
    block.append(part);
  });
  row.append(block);
}

async function showCode(article, row, button) {
  const open = button.getAttribute("aria-expanded") === "true";
  row.querySelectorAll("pre").forEach((block) => block.remove());
  button.setAttribute("aria-expanded", String(!open));
  if (open) return;
  const name = document.getElementById("question").dataset.name;
  const response = await fetch(`/question/${name}/code/${row.dataset.member}`);
  const answer = await response.json();
  if (!response.ok) { addBlock(row, "Error", [answer.error], "example"); return; }
  addBlock(row, "Code", answer.code, "example");
  if (answer.difference.length) addBlock(row, "Difference from the group's first code", answer.difference, "difference");
}

document.querySelectorAll("article").forEach((article) => {
  memberRows(article).forEach((row) => {
    box(row).addEventListener("change", () => article.dispatchEvent(new Event("chosen")));
    row.querySelector(".only").addEventListener("click", () => choose(article, (other) => other === row));
    row.querySelector(".show").addEventListener("click", (event) => showCode(article, row, event.currentTarget));
  });
  article.querySelector(".all")?.addEventListener("click", () => choose(article, () => true));
});
