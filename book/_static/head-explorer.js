/*
 * <head-explorer>: attention heads to look into. tfcourse.explorers.heads writes the element with its data as JSON and one plain table a
 * head; this script puts an interactive figure in front of the tables. No dependency, no request: it works from file:// as well.
 *
 * Keyboard: one tab stop for the heads (arrows move between heads and layers), one for the words (up and down choose the word,
 * left and right the head). What is shown is said in a sentence below the figure, which is a live region.
 */
(() => {
  "use strict";

  const SVG = "http://www.w3.org/2000/svg";
  const FAINT = 0.1; // from this weight on, a link of the words that are not chosen is drawn in the background
  const VISIBLE = 0.02; // and of the chosen word
  const WORTH_SAYING = 0.05;

  /** An element: properties with a dash or "role" become attributes, functions listeners, the rest properties. */
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

  function draw(tag, attributes, ...children) {
    const element = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children);
    return element;
  }

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

  function clamp(value, low, high) {
    return Math.min(Math.max(value, low), high);
  }

  class HeadExplorer extends HTMLElement {
    connectedCallback() {
      if (this.querySelector(":scope > .he")) return;
      // While the page is being parsed, the element is connected before its content is there.
      if (document.readyState === "loading") {
        document.addEventListener("DOMContentLoaded", () => this.upgrade(), { once: true });
      } else {
        this.upgrade();
      }
    }

    upgrade() {
      const source = this.querySelector(':scope > script[type="application/json"]');
      if (!source || this.querySelector(":scope > .he")) return;
      try {
        this.data = JSON.parse(source.textContent);
      } catch {
        return; // the tables stay
      }
      const { layer, head, query } = this.data.start;
      Object.assign(this, { layer, head, query, preview: null });
      const plain = this.querySelector(":scope > .he-plain");
      this.insertBefore(this.build(), plain || null);
      if (plain) this.fold(plain);
      this.render();
    }

    /** The tables stay at hand for whoever prefers numbers, folded away below the figure. */
    fold(plain) {
      plain.querySelector(":scope > figcaption")?.remove();
      const all = make("details", { className: "he-all" }, make("summary", {}, "All weights as tables"));
      plain.replaceWith(all);
      all.append(plain);
    }

    build() {
      const { caption } = this.data;
      this.heading = make("p", { className: "he-heading" });
      this.live = make("p", { className: "he-live", role: "status", "aria-live": "polite", "aria-atomic": "true" });
      const main = make("div", { className: "he-main" }, this.heading, this.buildStage());
      return make(
        "figure",
        { className: "he", role: "group", "aria-label": caption },
        make("div", { className: "he-panels" }, this.buildHeads(), main),
        this.live,
        make("figcaption", { className: "he-caption" }, caption),
      );
    }

    /** Every head as a small matrix: to compare them, and to choose one. */
    buildHeads() {
      const { weights, names: given } = this.data;
      const columns = Math.max(...weights.map((heads) => heads.length));
      this.radios = weights.map((heads, layer) => heads.map((rows, head) => this.buildThumb(rows, layer, head)));
      const only = given && weights.length === 1; // one row of named squares needs no number
      const lines = this.radios.map((radios, layer) =>
        make("div", { className: "he-layer" }, make("span", { className: "he-layer-name" }, only ? "" : `Layer ${layer + 1}`), ...radios),
      );
      const names = Array.from({ length: columns }, (_, head) => make("span", {}, given ? given[head] : `${head + 1}`));
      const corner = make("span", {}, given ? "" : "Head");
      const header = make("div", { className: "he-layer he-head-names", "aria-hidden": "true" }, corner, ...names);
      const group = make(
        "div",
        {
          className: given ? "he-heads he-named" : "he-heads",
          role: "radiogroup",
          "aria-label": given ? "Whose weights" : "Layer and head",
          keydown: (event) => this.onHeadKey(event),
        },
        header,
        ...lines,
      );
      group.style.setProperty("--he-columns", columns);
      const hint = make(
        "p",
        { className: "he-hint" },
        `Each square ${given ? "holds all weights" : "is one head"}: a row for each word that looks, a column for each word that is ` +
          "looked at. " +
          "Choose a square, then a word. Arrow keys work in both.",
      );
      return make("div", { className: "he-side" }, group, hint);
    }

    buildThumb(rows, layer, head) {
      const height = rows.length;
      const width = rows[0].length;
      const cells = rows.flatMap((row, y) =>
        row
          .map((weight, x) => [weight, x])
          .filter(([weight]) => weight >= 0.01)
          .map(([weight, x]) =>
            draw("rect", { x: x + 0.04, y: y + 0.04, width: 0.92, height: 0.92, "fill-opacity": clamp(weight, 0.06, 1).toFixed(2) }),
          ),
      );
      const marker = draw("rect", { class: "he-row", x: 0, width, height: 1, rx: 0.2 });
      const picture = draw(
        "svg",
        { viewBox: `-0.3 -0.3 ${width + 0.6} ${height + 0.6}`, preserveAspectRatio: "none", "aria-hidden": "true" },
        ...cells,
        marker,
      );
      const radio = make(
        "button",
        {
          type: "button",
          className: "he-thumb",
          role: "radio",
          "aria-label": title(this.data, layer, head),
          click: () => this.choose({ layer, head }),
        },
        picture,
      );
      radio.marker = marker;
      return radio;
    }

    /** The chosen head: words that look on the left, words that are looked at on the right, links between them. */
    buildStage() {
      const { keys, queries } = this.data;
      const rows = Math.max(keys.length, queries.length);
      this.words = queries.map((token, query) => this.buildWord(token, query));
      const looking = make(
        "div",
        {
          className: "he-queries",
          role: "radiogroup",
          "aria-label": "Word that looks",
          keydown: (event) => this.onWordKey(event),
          pointerleave: () => this.look(null),
        },
        ...this.words,
      );
      this.links = draw("svg", { class: "he-links", viewBox: `0 0 100 ${rows}`, preserveAspectRatio: "none", "aria-hidden": "true" });
      this.targets = keys.map((token, key) => this.buildTarget(token, key));
      const looked = make("ul", { className: "he-keys", role: "list", "aria-label": "Weights of the words that are looked at" });
      looked.append(...this.targets.map((target) => target.item));
      const stage = make(
        "div",
        { className: "he-stage" },
        make("span", { className: "he-column he-column-queries" }, "this word looks"),
        make("span", { className: "he-column he-column-keys" }, "at these words"),
        looking,
        this.links,
        looked,
      );
      stage.style.setProperty("--he-rows", rows);
      return stage;
    }

    buildWord(token, query) {
      return make(
        "button",
        {
          type: "button",
          className: "he-word",
          role: "radio",
          "aria-label": `${visible(token)}, word ${query + 1}`,
          title: token,
          click: () => this.choose({ query }),
          pointerenter: (event) => event.pointerType === "mouse" && this.look(query),
        },
        make("span", { className: "he-place" }, `${query + 1}`),
        make("span", { className: "he-token", dir: "auto" }, visible(token)),
      );
    }

    buildTarget(token, key) {
      const chip = make("span", { className: "he-token", dir: "auto", title: token }, visible(token));
      const fill = make("span", { className: "he-fill" });
      const number = make("span", { className: "he-number" });
      const bar = make("span", { className: "he-bar", "aria-hidden": "true" }, fill);
      const place = make("span", { className: "he-place", "aria-hidden": "true" }, `${key + 1}`);
      const item = make("li", { className: "he-key" }, place, chip, bar, number);
      return { item, fill, number };
    }

    /** Choose a head, a word, or both; `focus` names what the keyboard is on. */
    choose(change, focus) {
      Object.assign(this, change, { preview: null });
      this.render();
      if (focus === "head") this.radios[this.layer][this.head].focus();
      if (focus === "word") this.words[this.query].focus();
    }

    /** Show a word while the mouse is over it, without choosing it; null goes back to the chosen one. */
    look(query) {
      if (query === this.preview) return;
      this.preview = query;
      this.render();
    }

    /** The head one step to the left or right, passing from a layer to the next. */
    beside(step) {
      const all = this.radios.flatMap((heads, layer) => heads.map((_, head) => ({ layer, head })));
      const here = all.findIndex(({ layer, head }) => layer === this.layer && head === this.head);
      return all[(here + step + all.length) % all.length];
    }

    onHeadKey(event) {
      const other = (layer) => ({ layer, head: Math.min(this.head, this.radios[layer].length - 1) });
      const last = this.radios.length - 1;
      const moves = {
        ArrowLeft: () => this.beside(-1),
        ArrowRight: () => this.beside(1),
        ArrowUp: () => other(Math.max(this.layer - 1, 0)),
        ArrowDown: () => other(Math.min(this.layer + 1, last)),
        Home: () => ({ layer: 0, head: 0 }),
        End: () => ({ layer: last, head: this.radios[last].length - 1 }),
      };
      this.onKey(event, moves, "head");
    }

    onWordKey(event) {
      const last = this.words.length - 1;
      const moves = {
        ArrowUp: () => ({ query: Math.max(this.query - 1, 0) }),
        ArrowDown: () => ({ query: Math.min(this.query + 1, last) }),
        ArrowLeft: () => this.beside(-1),
        ArrowRight: () => this.beside(1),
        Home: () => ({ query: 0 }),
        End: () => ({ query: last }),
      };
      this.onKey(event, moves, "word");
    }

    onKey(event, moves, focus) {
      if (event.altKey || event.ctrlKey || event.metaKey || !Object.hasOwn(moves, event.key)) return;
      event.preventDefault(); // the arrows would scroll the page
      this.choose(moves[event.key](), focus);
    }

    render() {
      const shown = this.preview ?? this.query;
      const rows = this.data.weights[this.layer][this.head];
      const row = rows[shown];
      this.heading.textContent = title(this.data, this.layer, this.head);
      this.radios.forEach((heads, layer) =>
        heads.forEach((radio, head) => {
          mark(radio, layer === this.layer && head === this.head);
          radio.marker.setAttribute("y", shown);
        }),
      );
      this.words.forEach((word, query) => {
        mark(word, query === this.query);
        word.classList.toggle("he-shown", query === shown);
      });
      this.targets.forEach(({ item, fill, number }, key) => {
        const weight = row[key];
        item.style.setProperty("--he-weight", clamp(weight, 0, 1));
        item.classList.toggle("he-nothing", weight === 0);
        number.textContent = figure(weight);
        fill.style.transform = `scaleX(${clamp(weight, 0, 1)})`;
      });
      this.renderLinks(rows, shown);
      const sentence = this.describe(row, shown);
      if (this.live.textContent !== sentence) this.live.textContent = sentence;
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

  /** The chosen one of a group of radio buttons is the group's only tab stop. */
  function mark(radio, chosen) {
    radio.setAttribute("aria-checked", String(chosen));
    radio.tabIndex = chosen ? 0 : -1;
  }

  if (!customElements.get("head-explorer")) customElements.define("head-explorer", HeadExplorer);
})();
