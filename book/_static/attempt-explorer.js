/*
 * <attempt-explorer>: wrong solutions with the verdicts of the check, made by autograder/site/front_page/attempts.py. All of them are on
 * the page; this shows the one that the reader picks.
 *
 * Keyboard: the attempts are one tab stop, in which the arrows choose.
 */
(() => {
  "use strict";

  const { choice, make } = globalThis.tfcourse;

  class AttemptExplorer extends HTMLElement {
    connectedCallback() {
      if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", () => this.upgrade(), { once: true });
      else this.upgrade();
    }

    upgrade() {
      this.attempts = [...this.querySelectorAll(".tfc-attempt")];
      if (!this.attempts.length || this.options) return;
      const titles = this.attempts.map((attempt) => attempt.querySelector(".tfc-attempt-title"));
      const options = titles.map((title) => title.textContent);
      this.options = choice({ label: "Pick a wrong attention", options, onChoose: (index) => this.choose(index), legend: true });
      this.live = make("p", { className: "visually-hidden", role: "status", "aria-live": "polite" });
      titles.forEach((title) => title.remove());
      this.firstElementChild.prepend(this.options.element, this.live);
      this.classList.add("tfc-ready");
      this.choose(0, { silent: true });
    }

    choose(index, { silent = false } = {}) {
      this.attempts.forEach((attempt, other) => {
        attempt.hidden = other !== index;
      });
      this.options.mark(index);
      const [score, diagnosis] = [".tfc-attempt-score strong", ".tfc-attempt-diagnosis"].map(
        (part) => this.attempts[index].querySelector(part)?.textContent ?? "",
      );
      if (!silent) this.live.textContent = `${score}. ${diagnosis}`;
    }
  }

  customElements.define("attempt-explorer", AttemptExplorer);
})();
