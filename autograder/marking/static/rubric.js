"use strict";
// Applies a changed rubric to the answers that the page lists.
const apply = document.getElementById("apply");
const result = document.getElementById("status");

apply?.addEventListener("click", async () => {
  apply.disabled = true;
  result.textContent = "Saving …";
  const headers = { "Content-Type": "application/json", "X-XSRFToken": document.querySelector("meta[name=xsrf]").content };
  const body = JSON.stringify({ version: apply.dataset.version });
  try {
    const answer = await fetch(`/question/${apply.dataset.question}/rubric`, { method: "POST", headers, body });
    const found = await answer.json();
    result.textContent = answer.ok ? `Applied. The points of ${found.moved} answers changed; the history can undo it.` : found.error;
  } catch { result.textContent = "Not saved: the server does not answer."; }
});
