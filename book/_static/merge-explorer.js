/*
 * <merge-explorer>: byte-pair encoding, merge by merge, made by tfcourse.lessons.explorers.merges.
 *
 * The text of the lesson is recorded. A reader's own text is cut and merged here, by the rules of tfcourse.tokenization, into data of the same
 * form. A border between two symbols has the number of the merge that takes it away. Keyboard: the slider and the text field are native ones.
 */
(() => {
  "use strict";

  const { Explorer, define, make, slider, weightColour } = globalThis.tfcourse;
  const LATEST = 5;
  const PAIRS = 5;
  const MOST_MERGES = 200;
  const MOST_CHARACTERS = 400;
  // The rule of tfcourse.tokenization.pre_tokenize: Python's letters are those of Unicode and the numerals that are not decimal.
  const PIECES =
    /'(?:s|t|re|ve|m|ll|d)| ?[\p{L}\p{Nl}\p{No}]+| ?\p{Nd}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+/gu;

  /** How often each pair of neighbouring symbols occurs, the most common first; the smaller ids win a tie. */
  function countedPairs(words) {
    const counts = new Map();
    for (const word of words)
      for (let i = 0; i + 1 < word.length; i += 1) {
        const key = `${word[i].id} ${word[i + 1].id}`;
        counts.set(key, (counts.get(key) ?? 0) + 1);
      }
    const pairs = [...counts].map(([key, count]) => [...key.split(" ").map(Number), count]);
    return pairs.sort((a, b) => b[2] - a[2] || a[0] - b[0] || a[1] - b[1]);
  }

  /** Merge a pair in a word, from the left and without overlap; note the borders that vanish, and return how many. */
  function mergeIn(word, [left, right], made, borders, rank) {
    let done = 0;
    for (let i = 0; i + 1 < word.length; i += 1) {
      if (word[i].id !== left || word[i + 1].id !== right) continue;
      borders[word[i + 1].start - 1] = rank;
      word.splice(i, 2, { id: made, start: word[i].start });
      done += 1;
    }
    return done;
  }

  /** Learn the merges of a text, as tfcourse.lessons.explorers.merges records them. */
  function learn(text) {
    const characters = text.match(PIECES).map((piece) => [...piece]);
    const vocabulary = [...new Set(characters.flat())].sort((a, b) => a.codePointAt(0) - b.codePointAt(0));
    const words = characters.map((word) => word.map((character) => vocabulary.indexOf(character)));
    const joined = words.map((word) => word.slice(1).fill(0));
    const merges = [];
    const steps = [];
    const cut = words.map((word) => word.map((id, start) => ({ id, start })));
    for (;;) {
      const pairs = countedPairs(cut);
      steps.push([cut.reduce((sum, word) => sum + word.length, 0), vocabulary.length, pairs.slice(0, PAIRS)]);
      if (!pairs.length || merges.length === MOST_MERGES) break;
      const [left, right] = pairs[0];
      const symbol = vocabulary[left] + vocabulary[right];
      if (!vocabulary.includes(symbol)) vocabulary.push(symbol);
      const made = vocabulary.indexOf(symbol);
      const rank = merges.length + 1;
      const count = cut.reduce((sum, word, i) => sum + mergeIn(word, pairs[0], made, joined[i], rank), 0);
      merges.push([left, right, made, count]);
    }
    return { vocabulary, words, joined, merges, steps };
  }

  /** A symbol as a reader sees it, with spaces and line ends that can be seen. */
  function visible(symbol) {
    return symbol.replaceAll(" ", "␣").replaceAll("\n", "⏎");
  }

  class MergeExplorer extends Explorer {
    static tables = "All merges as a table";

    build() {
      this.done = 0;
      this.recorded = this.data;
      this.vocabulary = this.data.vocabulary.map(visible);
      this.dial = slider({ label: "Merges done", max: this.data.merges.length, onInput: (done) => this.choose({ done }) });
      const field = make("textarea", { rows: 2, maxLength: MOST_CHARACTERS, input: () => this.read(field.value) });
      const own = make("label", { className: "me-own" }, make("span", {}, "Or type a text of your own"), field);
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
      return [own, this.dial.element, this.words, views];
    }

    /** Learn from what the reader has typed; without a pair in it, go back to the text of the lesson. */
    read(text) {
      const own = text.trim() ? learn(text) : this.recorded;
      this.data = own.merges.length ? own : this.recorded;
      this.vocabulary = this.data.vocabulary.map(visible);
      this.dial.element.querySelector("input").max = this.data.merges.length;
      this.choose({ done: 0 });
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
