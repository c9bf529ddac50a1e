/*
 * <hero-explorer>: a sentence with the attention of a word as arcs, made by autograder/site/front_page/hero.py. All states are in the
 * picture; this shows the one that the reader asks for.
 *
 * Keyboard: heads and words are one tab stop each, in which the arrows choose. Mouse: hover over a word, or click on it.
 */
(() => {
  "use strict";

  const { RadioGroup, choice, make } = globalThis.tfcourse;

  class HeroExplorer extends HTMLElement {
    connectedCallback() {
      if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", () => this.upgrade(), { once: true });
      else this.upgrade();
    }

    upgrade() {
      const picture = this.querySelector("svg.tfc-hero");
      if (!picture || this.words) return;
      this.states = new Map([...picture.querySelectorAll("[data-state]")].map((state) => [state.dataset.state, state]));
      const chips = [...picture.querySelectorAll("[data-word]")];
      chips.forEach((chip) => chip.setAttribute("role", "radio"));
      picture.setAttribute("role", "presentation"); // an image would hide its words from screen readers
      picture.removeAttribute("aria-label");
      const around = picture.parentElement;
      const before = picture.nextSibling;
      this.words = new RadioGroup({ label: "The word that asks", rows: [chips], onChoose: (_, word) => this.choose({ word }) }, picture);
      around.insertBefore(this.words.element, before);
      chips.forEach((chip, word) => chip.addEventListener("pointerenter", () => this.choose({ word })));
      const options = Array.from({ length: Number(picture.dataset.heads) }, (_, head) => `Head ${head + 1}`);
      this.heads = choice({ label: "The head", options, onChoose: (head) => this.choose({ head }) });
      this.live = make("p", { className: "tfc-hero-live", role: "status", "aria-live": "polite" });
      around.insertBefore(make("div", { className: "tfc-hero-bar" }, this.heads.element, this.live), this.words.element);
      this.chips = chips;
      this.choose({ head: Number(picture.dataset.head), word: Number(picture.dataset.word) });
    }

    choose({ head = this.head, word = this.word }) {
      for (const state of this.states.values()) state.style.display = "none";
      const state = this.states.get(`${head}-${word}`);
      state.style.display = "";
      Object.assign(this, { head, word });
      this.heads.mark(head);
      this.words.mark(0, word);
      this.chips.forEach((chip, other) => {
        chip.classList.toggle("tfc-hero-query", other === word);
        chip.classList.toggle("tfc-hero-later", other > word);
      });
      if (this.live.textContent !== state.dataset.said) this.live.textContent = state.dataset.said;
    }
  }

  customElements.define("hero-explorer", HeroExplorer);
})();
