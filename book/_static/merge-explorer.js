/*
 * <merge-explorer>: byte-pair encoding, merge by merge, made by tfcourse.explorers.merges.
 *
 * Everything is recorded: the script merges and counts nothing. A border between two symbols has the number of the merge that takes it away.
 * Keyboard: the slider is a native one.
 */
(() => {
  "use strict";

  const { Explorer, define, make, slider, weightColour } = globalThis.tfcourse;
  const LATEST = 5;

  /** A symbol as a reader sees it, with spaces and line ends that can be seen. */
  function visible(symbol) {
    return symbol.replaceAll(" ", "␣").replaceAll("\n", "⏎");
  }

  class MergeExplorer extends Explorer {
    static tables = "All merges as a table";

    build() {
      this.done = 0;
      const { merges, vocabulary } = this.data;
      this.vocabulary = vocabulary.map(visible);
      this.dial = slider({ label: "Merges done", max: merges.length, onInput: (done) => this.choose({ done }) });
      this.words = make("div", { className: "explorer-words me-text" });
      this.pairs = make("div", { className: "me-pairs" });
      this.latest = make("div", { className: "me-latest" });
      const view = (title, part) => make("div", {}, make("p", { className: "explorer-legend" }, title), part);
      const views = make(
        "div",
        { className: "me-views" },
        view("Most common pairs, the next merge first", this.pairs),
        view("The vocabulary's latest symbols", this.latest),
      );
      return [this.dial.element, this.words, views];
    }

    /** The pieces of a word after so many merges: its symbols joined, how many they are, and the last merge inside of it. */
    cut(word) {
      const { words, joined } = this.data;
      const pieces = [];
      words[word].forEach((symbol, place) => {
        const merge = place ? joined[word][place - 1] : 0;
        if (merge && merge <= this.done) {
          const piece = pieces.at(-1);
          piece.text += this.vocabulary[symbol];
          piece.length += 1;
          piece.merge = Math.max(piece.merge, merge);
        } else pieces.push({ text: this.vocabulary[symbol], length: 1, merge: 0 });
      });
      return pieces;
    }

    /** A piece as a chip: the longer, the darker; framed, if the latest merge has made it. */
    chip({ text, length, merge }, first) {
      const isNew = merge > 0 && merge === this.done;
      const classes = ["me-piece", first ? "me-first" : "", isNew ? "me-new" : ""].filter(Boolean).join(" ");
      const chip = make("span", { className: classes, "data-tip": text }, text);
      chip.style.backgroundColor = weightColour((length - 1) / 6, { behindText: true });
      return chip;
    }

    symbol(place) {
      const text = this.vocabulary[place];
      return make("span", { className: "me-symbol", "data-tip": text }, text);
    }

    showPairs(pairs) {
      const most = Math.max(1, ...pairs.map(([, , count]) => count));
      const rows = pairs.flatMap(([left, right, count]) => {
        const bar = make("span", { className: "me-bar" });
        bar.style.width = `${(100 * count) / most}%`;
        const names = make("span", { className: "me-names" }, this.symbol(left), this.symbol(right));
        return [names, make("span", {}, bar), make("span", { className: "me-count" }, String(count))];
      });
      this.pairs.replaceChildren(...rows);
    }

    showLatest() {
      const { merges } = this.data;
      const first = Math.max(0, this.done - LATEST);
      const rows = merges.slice(first, this.done).flatMap(([left, right, made], place) => [
        make("span", { className: "me-count" }, `${first + place + 1}`),
        make("span", { className: "me-names" }, this.symbol(left), this.symbol(right), "→", this.symbol(made)),
      ]);
      this.latest.replaceChildren(...(rows.length ? rows : [make("span", { className: "me-none" }, "single symbols only")]));
    }

    /** A pair in words, for the sentence. */
    told([left, right, count]) {
      return `“${this.vocabulary[left]}” and “${this.vocabulary[right]}”, ${count} ${count === 1 ? "time" : "times"}`;
    }

    render() {
      const { words, merges, steps } = this.data;
      const [tokens, size, pairs] = steps[this.done];
      this.dial.mark(this.done, `${this.done} of ${merges.length}`);
      this.words.replaceChildren(...words.flatMap((_, word) => this.cut(word).map((piece, place) => this.chip(piece, !place))));
      this.showPairs(pairs);
      this.showLatest();
      const sentences = [`${tokens} tokens, a vocabulary of ${size}.`];
      if (this.done) {
        const [left, right, , count] = merges[this.done - 1];
        sentences.push(`Merge ${this.done} joined ${this.told([left, right, count])}.`);
      }
      if (this.done < merges.length) sentences.push(`Next: ${this.told(pairs[0])}.`);
      this.say(sentences.join(" "));
    }
  }

  define("merge-explorer", MergeExplorer);
})();
