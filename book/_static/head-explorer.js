/*
 * <head-explorer>: attention heads to look into, made by tfcourse.lessons.explorers.heads.
 *
 * Keyboard: one tab stop for the heads (arrows move between heads and layers), one for the words (up and down choose the word,
 * left and right the head).
 */
(() => {
  "use strict";

  const { Explorer, RadioGroup, clamp, define, draw, make, radio, weightColour } = globalThis.tfcourse;

  const FAINT = 0.1; // from this weight on, a link of the words that are not chosen is drawn in the background
  const VISIBLE = 0.02; // and of the chosen word
  const WORTH_SAYING = 0.05;

  /** A weight as text: a zero, such as a mask makes, is told from what is only small. */
  function figure(weight) {
    if (weight === 0) return "0";
    if (weight < 0.005) return "<\u20090.01";
    return weight.toFixed(2);
  }

  /** A token as it can be read: nothing but white space would not be seen. */
  function visible(token) {
    return token.trim() === "" ? "\u2423" : token;
  }

  /** A token in a sentence, with its place where the same token occurs more than once. */
  function spoken(tokens, index) {
    // Isolated, so that a word written from right to left does not turn the sentence around it.
    const word = `\u201c\u2068${visible(tokens[index])}\u2069\u201d`;
    return tokens.filter((token) => token === tokens[index]).length > 1 ? `${word} (word ${index + 1})` : word;
  }

  function listed(parts) {
    return parts.length < 2 ? parts.join("") : `${parts.slice(0, -1).join(", ")} and ${parts[parts.length - 1]}`;
  }

  /** What a head is called: by its name, where the heads have names, else by its number. */
  function title({ names, weights }, layer, head) {
    if (!names) return `Layer ${layer + 1}, head ${head + 1}`;
    return weights.length === 1 ? names[head] : `Layer ${layer + 1}, ${names[head]}`;
  }

  class HeadExplorer extends Explorer {
    static tables = "All weights as tables";

    build() {
      const { layer, head, query } = this.data.start;
      Object.assign(this, { layer, head, query, preview: null });
      this.heading = make("p", { className: "explorer-heading" });
      const main = make("div", { className: "he-main" }, this.heading, this.buildStage());
      return [make("div", { className: "he-panels" }, this.buildHeads(), main)];
    }

    /** Every head as a small matrix: to compare them, and to choose one. */
    buildHeads() {
      const { weights, names: given } = this.data;
      const columns = Math.max(...weights.map((heads) => heads.length));
      const rows = weights.map((heads, layer) => heads.map((matrix, head) => this.buildThumb(matrix, layer, head)));
      const only = given && weights.length === 1; // one row of named squares needs no number before it
      const lines = rows.map((radios, layer) =>
        make("div", { className: "he-layer" }, make("span", { className: "he-layer-name" }, only ? "" : `Layer ${layer + 1}`), ...radios),
      );
      const names = Array.from({ length: columns }, (_, head) => make("span", {}, given ? given[head] : `${head + 1}`));
      const corner = make("span", {}, given ? "" : "Head");
      const header = make("div", { className: "he-layer he-head-names", "aria-hidden": "true" }, corner, ...names);
      this.heads = new RadioGroup(
        {
          label: given ? "Whose weights" : "Layer and head",
          className: given ? "he-heads he-named" : "he-heads",
          rows,
          onChoose: (layer, head) => this.choose({ layer, head }),
        },
        header,
        ...lines,
      );
      this.heads.element.style.setProperty("--he-columns", columns);
      this.heads.element.style.setProperty("--he-label", only ? "0" : "4rem");
      const hint = make(
        "p",
        { className: "he-hint" },
        `Each square ${given ? "holds all weights" : "is one head"}: a row for each word that looks, a column for each word that is ` +
          "looked at. Choose a square, then a word. Arrow keys work in both.",
      );
      return make("div", { className: "he-side" }, this.heads.element, hint);
    }

    buildThumb(rows, layer, head) {
      const height = rows.length;
      const width = rows[0].length;
      const cells = rows.flatMap((row, y) =>
        row
          .map((weight, x) => [weight, x])
          .filter(([weight]) => weight >= 0.01)
          .map(([weight, x]) => {
            const style = `fill: ${weightColour(Math.max(weight, 0.06))}`;
            return draw("rect", { x: x + 0.04, y: y + 0.04, width: 0.92, height: 0.92, style });
          }),
      );
      const marker = draw("rect", { class: "he-row", x: 0, width, height: 1, rx: 0.2 });
      const box = `-0.3 -0.3 ${width + 0.6} ${height + 0.6}`;
      const picture = draw("svg", { viewBox: box, preserveAspectRatio: "none", "aria-hidden": "true" }, ...cells, marker);
      return radio(title(this.data, layer, head), { className: "he-thumb" }, picture);
    }

    /** The chosen head: words that look on the left, words that are looked at on the right, links between them. */
    buildStage() {
      const { keys, queries } = this.data;
      const rows = Math.max(keys.length, queries.length);
      const sideways = (step) => () => {
        const [layer, head] = this.heads.beside(step);
        this.choose({ layer, head });
      };
      this.words = new RadioGroup({
        label: "Word that looks",
        className: "he-queries",
        rows: queries.map((token, query) => [this.buildWord(token, query)]),
        onChoose: (query) => this.choose({ query }),
        arrows: { ArrowLeft: sideways(-1), ArrowRight: sideways(1) },
      });
      this.words.element.addEventListener("pointerleave", () => this.look(null));
      this.links = draw("svg", { class: "he-links", viewBox: `0 0 100 ${rows}`, preserveAspectRatio: "none", "aria-hidden": "true" });
      this.targets = keys.map((token, key) => this.buildTarget(token, key));
      const looked = make("ul", { className: "he-keys", role: "list", "aria-label": "Weights of the words that are looked at" });
      looked.append(...this.targets.map((target) => target.item));
      const stage = make(
        "div",
        { className: "he-stage" },
        make("span", { className: "he-column he-column-queries" }, "this word looks"),
        make("span", { className: "he-column he-column-keys" }, "at these words"),
        this.words.element,
        this.links,
        looked,
      );
      stage.style.setProperty("--he-rows", rows);
      return stage;
    }

    buildWord(token, query) {
      return radio(
        `${visible(token)}, word ${query + 1}`,
        { className: "he-word", pointerenter: (event) => event.pointerType === "mouse" && this.look(query) },
        make("span", { className: "he-place" }, `${query + 1}`),
        make("span", { className: "he-token", dir: "auto", "data-tip": visible(token) }, visible(token)),
      );
    }

    buildTarget(token, key) {
      const chip = make("span", { className: "he-token", dir: "auto", "data-tip": visible(token) }, visible(token));
      const fill = make("span", { className: "he-fill" });
      const number = make("span", { className: "he-number" });
      const bar = make("span", { className: "he-bar", "aria-hidden": "true" }, fill);
      const place = make("span", { className: "he-place", "aria-hidden": "true" }, `${key + 1}`);
      const item = make("li", { className: "he-key" }, place, chip, bar, number);
      return { item, chip, fill, number };
    }

    /** Choose a head, a word, or both. */
    choose(change) {
      super.choose({ ...change, preview: null });
    }

    /** Show a word while the mouse is over it, without choosing it; null goes back to the chosen one. */
    look(query) {
      if (query !== this.preview) super.choose({ preview: query });
    }

    render() {
      const shown = this.preview ?? this.query;
      const rows = this.data.weights[this.layer][this.head];
      const row = rows[shown];
      this.heading.textContent = title(this.data, this.layer, this.head);
      this.heads.mark(this.layer, this.head);
      for (const marker of this.heads.element.querySelectorAll(".he-row")) marker.setAttribute("y", shown);
      this.words.mark(this.query);
      this.words.rows.forEach(([word], query) => word.classList.toggle("he-shown", query === shown));
      this.targets.forEach(({ item, chip, fill, number }, key) => {
        const weight = row[key];
        chip.style.backgroundColor = weightColour(weight, { behindText: true });
        item.classList.toggle("he-nothing", weight === 0);
        number.textContent = figure(weight);
        fill.style.transform = `scaleX(${clamp(weight, 0, 1)})`;
      });
      this.renderLinks(rows, shown);
      this.say(this.describe(row, shown));
    }

    renderLinks(rows, shown) {
      const path = (query, key) => `M0 ${query + 0.5}C50 ${query + 0.5} 50 ${key + 0.5} 100 ${key + 0.5}`;
      const background = rows.flatMap((row, query) =>
        query === shown
          ? []
          : row.flatMap((weight, key) =>
              weight < FAINT ? [] : [draw("path", { d: path(query, key), "stroke-opacity": (0.5 * weight).toFixed(3) })],
            ),
      );
      const chosen = rows[shown].flatMap((weight, key) =>
        weight < VISIBLE
          ? []
          : [
              draw("path", {
                class: "he-link",
                d: path(shown, key),
                "stroke-width": (1 + 6 * weight).toFixed(2),
                "stroke-opacity": (0.3 + 0.7 * weight).toFixed(3),
              }),
            ],
      );
      this.links.replaceChildren(...background, ...chosen);
    }

    /** What the figure shows, in one sentence. */
    describe(row, query) {
      const { keys, queries } = this.data;
      const where = `${title(this.data, this.layer, this.head)}: ${spoken(queries, query)}`;
      const total = row.reduce((sum, weight) => sum + weight, 0);
      if (total === 0) return `${where} looks at nothing: all of its weights are zero.`;
      const ranked = row.map((weight, key) => [weight, key]).sort(([a], [b]) => b - a);
      const strong = ranked.filter(([weight]) => weight >= WORTH_SAYING).slice(0, 3);
      const said = (strong.length ? strong : ranked.slice(0, 1)).map(([weight, key]) => `${spoken(keys, key)} ${figure(weight)}`);
      const warning = Math.abs(total - 1) > 0.02 ? ` Its weights sum to ${total.toFixed(2)}, not to one.` : "";
      return `${where} looks at ${listed(said)}.${warning}`;
    }
  }

  define("head-explorer", HeadExplorer);
})();
