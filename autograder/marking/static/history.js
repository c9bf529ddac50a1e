"use strict";
const xsrf = document.querySelector("meta[name=xsrf]").content;
const message = document.getElementById("status");

document.querySelectorAll("button[data-entry]").forEach((button) => button.addEventListener("click", async () => {
  button.disabled = true;
  const headers = { "Content-Type": "application/json", "X-XSRFToken": xsrf };
  const body = JSON.stringify({ entry: button.dataset.entry });
  const answer = await fetch("/undo", { method: "POST", headers, body });
  const found = await answer.json();
  if (answer.ok && !found.skipped) { location.reload(); return; }
  const named = found.names && found.names.length ? `: ${found.names.join(", ")}` : "";
  message.textContent = answer.ok ? `Undone for ${found.undone}; ${found.skipped} changed since and left as they are${named}.` : found.error;
}));
