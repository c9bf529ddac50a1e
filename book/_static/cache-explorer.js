/*
 * <cache-explorer>: a decoder that writes, token by token, made by tfcourse.lessons.explorers.caches.
 *
 * All numbers are recorded. A score is a cell: its row is the query that asks, its column the key that is asked.
 * Keyboard: the choice is a tab stop with arrows, the stepper has buttons.
 */
(() => {
  "use strict";

  const { Explorer, choice, define, make } = globalThis.tfcourse;
  const WAYS = ["Without a cache", "With a cache"];

  /** A whole number as readers write it: 12,345. */
  function grouped(number) {
    return number.toLocaleString("en-GB");
  }

  /** Bytes in the unit that reads best. */
  function bytes(number) {
    return number < 1024 ? `${number} bytes` : `${grouped(Math.round(number / 1024))} KiB`;
  }

  class CacheExplorer extends Explorer {
    static tables = "All steps as a table";

    build() {
      const { words } = this.data;
      this.way = 0;
      this.step = Math.min(3, words.length - 1);
      this.ways = choice({ label: "How the model writes", options: WAYS, onChoose: (way) => this.choose({ way }) });
      this.steps = this.stepper({
        label: "Newest token",
        count: words.length,
        every: 900,
        onStep: (step) => this.choose({ step }),
      });
      this.chips = words.map((word) => make("span", { className: "ce-word", "data-tip": word }, word));
      this.cells = words.map((_, query) => words.map((_, key) => make("span", { className: "ce-cell" })));
      const grid = make("div", { className: "ce-grid" }, ...this.cells.flat());
      grid.style.setProperty("--ce-count", String(words.length));
      grid.setAttribute("aria-hidden", "true");
      this.counts = make("dl", { className: "ce-counts" });
      const view = (title, part) => make("div", {}, make("p", { className: "explorer-legend" }, title), part);
      return [
        this.ways.element,
        this.steps.element,
        make("div", { className: "explorer-words" }, ...this.chips),
        make(
          "div",
          { className: "ce-views" },
          view("Scores: a row for each query, a column for each key", grid),
          view("Multiplications, and what is kept", this.counts),
        ),
      ];
    }

    /** What becomes of a token, or of a score: it is computed now, comes from the cache, or is not there yet. */
    static state(query, step, cached) {
      if (query > step) return "ce-later";
      return query === step || !cached ? "ce-now" : "ce-kept";
    }

    row(name, value) {
      return [make("dt", {}, name), make("dd", {}, value)];
    }

    render() {
      const { words, steps } = this.data;
      const cached = this.way === 1;
      this.ways.mark(this.way);
      this.steps.mark(this.step);
      this.chips.forEach((chip, place) => {
        chip.className = `ce-word ${CacheExplorer.state(place, this.step, cached)}`;
      });
      this.cells.forEach((row, query) =>
        row.forEach((cell, key) => {
          const state = CacheExplorer.state(query, this.step, cached);
          cell.className = `ce-cell ${key > query ? "ce-masked" : state === "ce-kept" ? "ce-past" : state}`;
        }),
      );
      const [recomputed, newest, kept] = steps[this.step];
      const total = (column) => steps.slice(0, this.step + 1).reduce((sum, costs) => sum + costs[column], 0);
      const column = cached ? 1 : 0;
      const ratio = total(0) / total(1);
      this.counts.replaceChildren(
        ...this.row("this token", grouped(steps[this.step][column])),
        ...this.row("all so far", grouped(total(column))),
        ...this.row("kept", cached ? bytes(kept) : "nothing"),
        ...this.row("without ÷ with, so far", ratio.toFixed(1)),
      );
      const queries = cached ? 1 : this.step + 1;
      this.say(
        `After “${words[this.step]}”: ${queries} ${queries === 1 ? "token goes" : "tokens go"} through the model, ` +
          `${grouped(cached ? newest : recomputed)} multiplications${cached ? `, ${bytes(kept)} of keys and values are kept` : ""}.`,
      );
    }
  }

  define("cache-explorer", CacheExplorer);
})();
