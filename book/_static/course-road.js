/*
 * <course-road>: what a part of the course is built of, drawn as arcs. Hover over a part, or focus its link; without either, Llama shows.
 * Everything else (names, links) is plain HTML and works without this script.
 */
(() => {
  "use strict";

  const NS = "http://www.w3.org/2000/svg";
  const LAST = "Llama";

  class CourseRoad extends HTMLElement {
    connectedCallback() {
      // The script may come before the page's end: the parts are there when the page is.
      if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", () => this.upgrade(), { once: true });
      else this.upgrade();
    }

    upgrade() {
      this.parts = JSON.parse(this.dataset.parts);
      this.chips = new Map([...this.querySelectorAll("[data-part]")].map((chip) => [chip.dataset.part, chip]));
      this.figure = this.querySelector("figure");
      this.live = this.querySelector(".tfc-road-live");
      this.svg = document.createElementNS(NS, "svg");
      this.svg.setAttribute("aria-hidden", "true");
      this.figure.prepend(this.svg);
      for (const [name, chip] of this.chips) {
        chip.addEventListener("mouseenter", () => this.choose(name));
        chip.addEventListener("focusin", () => this.choose(name));
      }
      new ResizeObserver(() => this.draw()).observe(this.figure);
      const names = [...this.chips.keys()];
      this.choose(this.chips.has(LAST) ? LAST : names[names.length - 1]);
    }

    /* The parts that a part is built of, at first or second hand. */
    below(name) {
      const found = new Set();
      const queue = [name];
      while (queue.length) {
        for (const other of this.parts[queue.pop()] ?? []) {
          if (!found.has(other)) {
            found.add(other);
            queue.push(other);
          }
        }
      }
      found.delete(name);
      return found;
    }

    choose(name) {
      this.chosen = name;
      const used = this.below(name);
      const direct = new Set(this.parts[name]);
      for (const [other, chip] of this.chips) {
        chip.classList.toggle("tfc-chosen", other === name);
        chip.classList.toggle("tfc-used", used.has(other));
        chip.classList.toggle("tfc-direct", direct.has(other));
      }
      const list = [...direct].join(", ");
      const more = used.size - direct.size;
      const rest = more > 0 ? `, and through them of ${more} more` : "";
      this.live.textContent = list ? `${name} is built of ${list}${rest}.` : `${name} is built of PyTorch alone.`;
      this.draw();
    }

    draw() {
      const frame = this.figure.getBoundingClientRect();
      const middle = (name) => {
        const box = this.chips.get(name).getBoundingClientRect();
        return [box.left + box.width / 2 - frame.left, box.top - frame.top, box.height];
      };
      const [x, y] = middle(this.chosen);
      const paths = [...this.parts[this.chosen]].filter((name) => this.chips.has(name)).map((name) => {
        const [a, top, height] = middle(name);
        const path = document.createElementNS(NS, "path");
        const away = Math.max(24, Math.abs(y - top) / 3);
        const from = top < y ? top + height : top;
        path.setAttribute("d", `M${x} ${y}C${x} ${y - away} ${a} ${from + away} ${a} ${from}`);
        return path;
      });
      this.svg.replaceChildren(...paths);
    }
  }

  customElements.define("course-road", CourseRoad);
})();
