"use strict";
const xsrf = document.querySelector("meta[name=xsrf]").content;
const message = document.getElementById("status");

// The journal writes each time with the offset of the machine that wrote it; the page shows the reader's own time.
document.querySelectorAll("time").forEach((time) => {
  time.title = time.dateTime;
  time.textContent = new Date(time.dateTime).toLocaleString([], { dateStyle: "medium", timeStyle: "short" });
});
document.querySelectorAll("button[data-entry]").forEach((button) => button.addEventListener("click", async () => {
  button.disabled = true;
  message.textContent = "Saving …";
  const headers = { "Content-Type": "application/json", "X-XSRFToken": xsrf };
  const body = JSON.stringify({ entry: button.dataset.entry });
  let answer;
  let found;
  try {
    answer = await fetch("/undo", { method: "POST", headers, body });
    found = await answer.json();
  } catch { message.textContent = "Not saved: the server does not answer."; button.disabled = false; return; }
  if (answer.ok && !found.skipped) { location.reload(); return; }
  const named = found.names && found.names.length ? `: ${found.names.join(", ")}` : "";
  message.textContent = answer.ok ? `Undone for ${found.undone}; ${found.skipped} changed since and left as they are${named}.` : found.error;
}));
