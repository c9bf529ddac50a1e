/*
 * <gap-explorer>: words to hide, and what a masked model puts into the gaps, made by tfcourse.lessons.explorers.gaps.
 *
 * Everything is recorded, for every set of gaps; the script computes nothing.
 * Keyboard: the words are buttons that are pressed or not.
 */
(() => {
  "use strict";

  const { Explorer, choice, define, draw, make, weightColour } = globalThis.tfcourse;
  const CELL = 14;

  function percent(share) {
    if (share > 0 && share < 0.005) return "< 1 %";
    return `${Math.round(100 * share)} %`;
  }

  class GapExplorer extends Explorer {
    static tables = "Hidden words as tables";

    build() {
      const { sentences } = this.data;
      this.sentence = 0;
      this.holes = sentences.map((words) => 1 << Math.min(2, words.length - 1));
      this.which = choice({ label: "Sentence", options: sentences.map((_, i) => `${i + 1}`), onChoose: (sentence) => this.choose({ sentence }), legend: true });
      this.words = make("div", { className: "explorer-words ge-words", role: "group", "aria-label": "Words to hide" });
      this.guesses = make("div", { className: "ge-guesses" });
      this.masks = make("div", { className: "ge-masks" });
      this.shown = -1;
      const legend = make("p", { className: "explorer-legend" }, "Click words to hide them, and to take them back");
      return [this.which.element, legend, this.words, this.guesses, this.masks];
    }

    word(place) {
      return this.data.vocabulary[this.data.sentences[this.sentence][place]];
    }

    isHidden(place) {
      return Boolean((this.holes[this.sentence] >> place) & 1);
    }

    toggle(place) {
      this.holes[this.sentence] ^= 1 << place;
      this.render();
    }

    /** The words of the sentence as buttons; they are made once for each sentence, so that the focus stays where it is. */
    showWords() {
      const places = this.data.sentences[this.sentence].map((_, place) => place);
      if (this.shown !== this.sentence) {
        this.shown = this.sentence;
        this.words.replaceChildren(
          ...places.map((place) => make("button", { type: "button", className: "ge-word", click: () => this.toggle(place) })),
        );
      }
      [...this.words.children].forEach((button, place) => {
        const hidden = this.isHidden(place);
        button.textContent = hidden ? "[MASK]" : this.word(place);
        button.dataset.tip = this.word(place);
        button.setAttribute("aria-pressed", String(hidden));
        button.setAttribute("aria-label", `${this.word(place)}, ${hidden ? "hidden" : "shown"}`);
      });
    }

    /** The gaps with their guesses: a bar each, the hidden word framed. */
    gap(place, guess) {
      const truth = this.data.sentences[this.sentence][place];
      const rows = guess.flatMap(([word, share]) => {
        const text = this.data.vocabulary[word];
        const name = make("span", { className: word === truth ? "ge-name ge-true" : "ge-name", "data-tip": text }, text);
        const bar = make("span", { className: "ge-bar" });
        bar.style.width = `${100 * share}%`;
        bar.style.backgroundColor = weightColour(Math.max(share, 0.15));
        return [name, make("span", {}, bar), make("span", { className: "ge-share" }, percent(share))];
      });
      const title = make("p", { className: "explorer-legend" }, `Gap at word ${place + 1}`);
      return make("div", { className: "ge-gap" }, title, make("div", { className: "ge-rows" }, ...rows));
    }

    /** Who sees whom: the rows of the gaps framed, hidden words as crosses. */
    mask(title, sees) {
      const n = this.data.sentences[this.sentence].length;
      const cells = [];
      for (let row = 0; row < n; row += 1)
        for (let column = 0; column < n; column += 1) {
          const weight = sees(row, column) ? (this.isHidden(column) ? 0.2 : 0.75) : 0;
          const style = `fill: ${weightColour(weight)}`;
          cells.push(draw("rect", { x: column * CELL, y: row * CELL, width: CELL, height: CELL, style, class: "ge-cell" }));
        }
      for (let row = 0; row < n; row += 1)
        if (this.isHidden(row)) cells.push(draw("rect", { x: 0, y: row * CELL, width: n * CELL, height: CELL, class: "ge-row" }));
      const size = n * CELL;
      const box = `-2 -2 ${size + 4} ${size + 4}`;
      const picture = draw("svg", { viewBox: box, width: size + 4, height: size + 4, "aria-hidden": "true" }, ...cells);
      return make("div", {}, make("p", { className: "explorer-legend" }, title), picture);
    }

    render() {
      const { vocabulary, guesses } = this.data;
      const gaps = guesses[this.sentence][this.holes[this.sentence]];
      const places = this.data.sentences[this.sentence].map((_, place) => place).filter((place) => this.isHidden(place));
      this.which.mark(this.sentence);
      this.showWords();
      const parts = places.map((place, gap) => this.gap(place, gaps[gap]));
      this.guesses.replaceChildren(...(parts.length ? parts : [make("p", { className: "ge-none" }, "Nothing is hidden: there is nothing to guess.")]));
      this.masks.replaceChildren(
        this.mask("What a gap sees in an encoder", () => true),
        this.mask("and in a decoder", (row, column) => column <= row),
      );
      const told = places.map((place, gap) => {
        const [word, share] = gaps[gap][0];
        const truth = this.data.sentences[this.sentence][place];
        const best = `Word ${place + 1}: “${vocabulary[word]}”, ${percent(share)}`;
        if (word === truth) return best;
        const [, hidden] = gaps[gap].find(([other]) => other === truth);
        return `${best} (hidden: “${vocabulary[truth]}”, ${percent(hidden)})`;
      });
      this.say(places.length ? `Sentence ${this.sentence + 1}, best guesses. ${told.join(". ")}.` : `Sentence ${this.sentence + 1}: nothing is hidden.`);
    }
  }

  define("gap-explorer", GapExplorer);
})();
