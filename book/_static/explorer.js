/*
 * What all figures to play with share. tfcourse.lessons.explorers writes a custom element with its data as JSON and plain tables; the element's
 * own script defines a class that extends Explorer and builds an interactive figure, which takes the place of the tables. Pages load this
 * file before the element's own. No dependency, no request: it works from file:// as well.
 *
 * A class of its own has `build()`, which returns the parts of the figure, and `render()`, which shows the state and says it in a
 * sentence. book/contributing.md has a complete example.
 */
(() => {
  "use strict";
  if (globalThis.tfcourse) return;

  const SVG = "http://www.w3.org/2000/svg";
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  let figures = 0; // numbers the figures of a page, for identifiers

  /** An HTML element: properties with a dash or "role" become attributes, functions listeners, the rest properties. */
  function make(tag, properties = {}, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(properties)) {
      if (typeof value === "function") element.addEventListener(name, value);
      else if (name.includes("-") || name === "role") element.setAttribute(name, value);
      else element[name] = value;
    }
    element.append(...children);
    return element;
  }

  /** An SVG element with attributes. */
  function draw(tag, attributes, ...children) {
    const element = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children);
    return element;
  }

  function clamp(value, low, high) {
    return Math.min(Math.max(value, low), high);
  }

  /** The colour of a weight from 0 to 1: more weight is darker indigo on the page's ground; behind text so pale that it can be read. */
  function weightColour(weight, { behindText = false } = {}) {
    const share = `${(100 * clamp(weight, 0, 1)).toFixed(1)}%`;
    const most = behindText ? `calc(${share} * var(--tfcourse-weight-behind-text))` : share;
    return `color-mix(in srgb, var(--tfcourse-weight) ${most}, transparent)`;
  }

  /** A button that is one of a RadioGroup. */
  function radio(label, properties, ...children) {
    return make("button", { type: "button", role: "radio", "aria-label": label, ...properties }, ...children);
  }

  /**
   * Buttons of which one is chosen, in rows: one tab stop, in which the arrows choose. Left and right go on in the next row and around
   * the ends, up and down stay in the column; a single row goes left and right with all four. `arrows` maps keys to other functions.
   */
  class RadioGroup {
    constructor({ label, rows, onChoose, className = "", arrows = {} }, ...children) {
      Object.assign(this, { rows, onChoose, arrows, row: 0, column: 0 });
      this.element = make("div", { className, role: "radiogroup", "aria-label": label, keydown: (event) => this.onKey(event) });
      this.element.append(...(children.length ? children : rows.flat()));
      rows.forEach((radios, row) => radios.forEach((one, column) => one.addEventListener("click", () => onChoose(row, column))));
      this.mark(0, 0);
    }

    /** Show which button is chosen: the only tab stop of the group. */
    mark(row, column = 0) {
      Object.assign(this, { row, column });
      this.rows.forEach((radios, y) =>
        radios.forEach((one, x) => {
          one.setAttribute("aria-checked", String(y === row && x === column));
          one.tabIndex = y === row && x === column ? 0 : -1;
        }),
      );
    }

    focus() {
      this.rows[this.row][this.column].focus();
    }

    /** The place so many buttons further on, around the ends. */
    beside(step) {
      const all = this.rows.flatMap((radios, row) => radios.map((_, column) => [row, column]));
      const here = all.findIndex(([row, column]) => row === this.row && column === this.column);
      return all[(here + step + all.length) % all.length];
    }

    /** The place so many rows further down, if there is such a row. */
    below(step) {
      if (this.rows.length === 1) return this.beside(step);
      const row = clamp(this.row + step, 0, this.rows.length - 1);
      return [row, Math.min(this.column, this.rows[row].length - 1)];
    }

    onKey(event) {
      const last = this.rows.length - 1;
      const go = (place) => () => this.onChoose(...place());
      const moves = {
        ArrowLeft: go(() => this.beside(-1)),
        ArrowRight: go(() => this.beside(1)),
        ArrowUp: go(() => this.below(-1)),
        ArrowDown: go(() => this.below(1)),
        Home: go(() => [0, 0]),
        End: go(() => [last, this.rows[last].length - 1]),
        ...this.arrows,
      };
      if (event.altKey || event.ctrlKey || event.metaKey || !Object.hasOwn(moves, event.key)) return;
      event.preventDefault(); // the arrows would scroll the page
      moves[event.key]();
      this.focus();
    }
  }

  /** Buttons in a row, of which one is chosen. An option is its name, or a list of its name and a picture to stand before it. */
  function choice({ label, options, onChoose, legend = false }) {
    const radios = options.map((option) => {
      const [name, ...picture] = [option].flat();
      return radio(name, { className: "explorer-option" }, ...picture, name);
    });
    const group = new RadioGroup({ label, rows: [radios], className: "explorer-options", onChoose: (_, column) => onChoose(column) });
    const heading = make("span", { className: "explorer-legend", "aria-hidden": "true" }, label);
    const element = make("div", { className: "explorer-choice" }, ...(legend ? [heading] : []), group.element);
    return { element, mark: (column) => group.mark(0, column) };
  }

  /** A slider with its name before it and its value behind it. */
  function slider({ label, min = 0, max, step = 1, onInput }) {
    const shown = make("b", { className: "explorer-value", "aria-hidden": "true" });
    const input = make("input", { type: "range", min, max, step, input: () => onInput(Number(input.value)) });
    const element = make("label", { className: "explorer-slider" }, make("span", {}, label), input, shown);
    const mark = (value, text = String(value), spoken = text) => {
      input.value = value;
      input.setAttribute("aria-valuetext", spoken);
      shown.textContent = text;
    };
    return { element, mark };
  }

  /**
   * Buttons that go a step back and forward, and with `every`, in milliseconds, one that plays the steps and pauses. It plays only when
   * asked to, and not at all for readers who want no motion: they step. `onPlay` is told when it starts and stops.
   */
  class Stepper {
    constructor({ label, count, onStep, onPlay, every = 0 }) {
      Object.assign(this, { count, onStep, onPlay, every, step: 0, timer: null });
      const button = (name, action) => make("button", { type: "button", className: "explorer-option", click: action }, name);
      this.back = button("Back", () => this.go(this.step - 1));
      this.next = button("Next", () => this.go(this.step + 1));
      this.play = button("Play", () => (this.timer ? this.pause() : this.start()));
      this.shown = make("b", { className: "explorer-value" });
      const buttons = every ? [this.back, this.next, this.play] : [this.back, this.next];
      const group = { className: "explorer-options", role: "group", "aria-label": label };
      this.element = make(
        "div",
        { className: "explorer-stepper" },
        make("span", { "aria-hidden": "true" }, label),
        make("div", group, ...buttons),
        this.shown,
      );
      const follow = () => {
        this.play.hidden = still.matches;
        if (still.matches) this.pause();
      };
      still.addEventListener("change", follow);
      follow();
      this.mark(0);
    }

    /** A step by hand, which ends playing. */
    go(step) {
      this.pause();
      if (step >= 0 && step < this.count) this.onStep(step);
    }

    start() {
      this.timer = setInterval(() => this.tick(), this.every);
      this.play.textContent = "Pause";
      this.onPlay(true);
      if (this.step === this.count - 1) this.onStep(0);
    }

    tick() {
      if (!this.element.isConnected || document.hidden) return this.pause();
      this.onStep(this.step + 1);
      if (this.step === this.count - 1) this.pause();
    }

    pause() {
      if (!this.timer) return;
      clearInterval(this.timer);
      this.timer = null;
      this.play.textContent = "Play";
      this.onPlay(false);
    }

    mark(step) {
      this.step = step;
      this.shown.textContent = `${step + 1} of ${this.count}`;
      // Not `disabled`: the button that somebody has just pressed must not lose the focus.
      this.back.setAttribute("aria-disabled", String(step === 0));
      this.next.setAttribute("aria-disabled", String(step === this.count - 1));
    }
  }

  /**
   * What a part with `data-tip` has to say, in a bubble below it, while the mouse or the keyboard is on it; Escape takes it away. Where
   * the tip is the part's own text, it appears only if that text is cut off.
   */
  class Tip {
    constructor(figure, number) {
      this.figure = figure;
      this.bubble = make("span", { className: "explorer-tip", role: "tooltip", id: `explorer-tip-${number}`, hidden: true });
      figure.append(this.bubble);
      for (const event of ["pointerover", "focusin"]) figure.addEventListener(event, ({ target }) => this.visit(target));
      figure.addEventListener("pointerleave", () => this.hide());
      figure.addEventListener("focusout", () => this.hide());
      figure.addEventListener("keydown", ({ key }) => key === "Escape" && this.hide());
    }

    visit(target) {
      if (target === this.bubble) return; // the mouse may go to the bubble
      const part = target.closest("[data-tip]") ?? (target.matches("button") ? target.querySelector("[data-tip]") : null);
      if (!part || !this.figure.contains(part)) return this.hide();
      const { tip } = part.dataset;
      const cut = part.scrollWidth > part.clientWidth;
      if (!tip || (tip === part.textContent && !cut)) return this.hide();
      this.show(part, target, tip);
    }

    show(part, target, tip) {
      this.hide();
      this.bubble.textContent = tip;
      this.bubble.hidden = false;
      const [at, around] = [part.getBoundingClientRect(), this.figure.getBoundingClientRect()];
      this.bubble.style.top = `${at.bottom - around.top}px`;
      this.bubble.style.left = `${clamp(at.left - around.left, 0, Math.max(around.width - this.bubble.offsetWidth, 0))}px`;
      this.described = target;
      target.setAttribute("aria-describedby", this.bubble.id);
    }

    hide() {
      this.bubble.hidden = true;
      this.described?.removeAttribute("aria-describedby");
      this.described = null;
    }
  }

  /**
   * A figure to play with. Of its own a figure has `build()`, which returns its parts, and `render()`, which shows the state. There are
   * `this.data`, `this.plain` (the figure with the tables) and `this.say(sentence)`, which writes into a live region.
   */
  class Explorer extends HTMLElement {
    static tables = "Everything as tables";

    connectedCallback() {
      // While the page is being parsed, the element is connected before its content is there.
      if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", () => this.upgrade(), { once: true });
      else this.upgrade();
    }

    upgrade() {
      const source = this.querySelector(':scope > script[type="application/json"]');
      if (!source || this.querySelector(":scope > .explorer-figure")) return;
      try {
        this.data = JSON.parse(source.textContent);
      } catch {
        return; // the tables stay
      }
      this.plain = this.querySelector(":scope > .explorer-plain");
      this.live = make("p", { className: "explorer-live", role: "status", "aria-live": "polite", "aria-atomic": "true" });
      const { caption } = this.data;
      this.figure = make("figure", { className: "explorer-figure", role: "group", "aria-label": caption }, ...this.build());
      if (!this.figure.contains(this.live)) this.figure.append(this.live); // some have a better place for it
      this.figure.append(make("figcaption", { className: "explorer-caption" }, caption));
      this.tip = new Tip(this.figure, (figures += 1));
      this.insertBefore(this.figure, this.plain);
      this.fold();
      this.render();
    }

    /** The tables stay at hand for whoever prefers numbers, folded away below the figure. */
    fold() {
      if (!this.plain) return;
      this.plain.querySelector(":scope > figcaption")?.remove();
      const all = make("details", { className: "explorer-all" }, make("summary", {}, this.constructor.tables));
      this.plain.replaceWith(all);
      all.append(this.plain);
    }

    /** Say what the figure shows. A sentence that has not changed is not said again. */
    say(sentence) {
      if (this.live.textContent !== sentence) this.live.textContent = sentence;
    }

    /** Change some of the state, and show it. */
    choose(change) {
      Object.assign(this, change);
      this.render();
    }

    /** A Stepper of this figure: while it plays, the live region is silent, and then says where it has come to. */
    stepper(options) {
      const onPlay = (playing) => {
        this.live.setAttribute("aria-live", playing ? "off" : "polite");
        if (!playing) this.render();
      };
      return new Stepper({ onPlay, ...options });
    }
  }

  /** Define an element, unless a page that shows the script twice has it already. */
  function define(name, Class) {
    if (!customElements.get(name)) customElements.define(name, Class);
  }

  globalThis.tfcourse = { Explorer, RadioGroup, choice, clamp, define, draw, make, radio, slider, weightColour };
})();
