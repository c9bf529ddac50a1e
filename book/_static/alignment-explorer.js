/*
 * <alignment-explorer>: alignments of several pairs of sentences to look into. tfcourse.explorers.alignments writes the element with one
 * section a pair, and in each section a <head-explorer> whose heads are the aligners; this script puts a choice of the pair in front,
 * shows one section at a time, and keeps the chosen aligner from pair to pair. No dependency, no request: it works from file:// as well.
 */
(() => {
  "use strict";

  let made = 0;

  class AlignmentExplorer extends HTMLElement {
    connectedCallback() {
      // While the page is being parsed, the element is connected before its content is there.
      if (document.readyState === "loading") {
        document.addEventListener("DOMContentLoaded", () => this.upgrade(), { once: true });
      } else {
        this.upgrade();
      }
    }

    upgrade() {
      const figure = this.querySelector(":scope > figure");
      const source = this.querySelector(':scope > script[type="application/json"]');
      if (!figure || !source || figure.querySelector(":scope > .ae-choice")) return;
      let titles;
      try {
        ({ titles } = JSON.parse(source.textContent));
      } catch {
        return; // all pairs stay, one below the other
      }
      this.sections = [...figure.querySelectorAll(":scope > .ae-pair")];
      this.shown = 0;
      figure.prepend(this.build(titles));
      this.show(0);
    }

    build(titles) {
      const choice = document.createElement("div");
      const label = document.createElement("label");
      this.select = document.createElement("select");
      this.status = document.createElement("p");
      choice.className = "ae-choice";
      this.select.id = `ae-pair-${(made += 1)}`;
      label.htmlFor = this.select.id;
      label.textContent = "Pair of sentences";
      this.select.append(...titles.map((title, index) => new Option(title, index)));
      this.select.addEventListener("change", () => this.show(this.select.selectedIndex));
      this.status.className = "ae-status";
      this.status.setAttribute("role", "status");
      choice.append(label, this.select, this.status);
      return choice;
    }

    /** Show one pair, by the aligner that the pair before it was shown by. */
    show(index) {
      const explorer = (at) => this.sections[at].querySelector("head-explorer");
      const { head } = explorer(this.shown);
      this.shown = index;
      this.sections.forEach((section, at) => {
        section.hidden = at !== index;
      });
      if (head !== undefined && explorer(index).head !== undefined) explorer(index).choose({ head });
      this.status.textContent = this.sections[index].querySelector(".ae-crossings").textContent;
    }
  }

  if (!customElements.get("alignment-explorer")) customElements.define("alignment-explorer", AlignmentExplorer);
})();
