/*
 * <span-explorer>: words to hide, and the question and answer that are made of the rest, made by tfcourse.lessons.explorers.spans.
 *
 * Keyboard: the words are buttons that are pressed or not; the drawn masks are a tab stop with arrows.
 */
(() => {
  "use strict";

  const { Explorer, choice, define, make } = globalThis.tfcourse;

  class SpanExplorer extends Explorer {
    static tables = "Drawn masks as a table";

    build() {
      const { words, drawn } = this.data;
      this.mask = 0;
      this.gone = new Set(drawn[0]);
      this.which = choice({
        label: "Drawn mask",
        options: drawn.map((_, i) => `${i + 1}`),
        onChoose: (mask) => {
          this.gone = new Set(drawn[mask]);
          this.choose({ mask });
        },
        legend: true,
      });
      this.buttons = words.map((word, place) => make("button", { type: "button", className: "sc-word", click: () => this.toggle(place) }, word));
      const group = make("div", { className: "explorer-words", role: "group", "aria-label": "Words to hide" }, ...this.buttons);
      this.source = make("div", { className: "explorer-words sc-source" });
      this.target = make("div", { className: "explorer-words sc-target" });
      const legend = (text) => make("p", { className: "explorer-legend" }, text);
      return [
        this.which.element,
        legend("Text: click words to hide them, and to take them back"),
        group,
        legend("Source: what the encoder reads"),
        this.source,
        legend("Target: what the decoder writes"),
        this.target,
      ];
    }

    toggle(place) {
      if (!this.gone.delete(place)) this.gone.add(place);
      this.render();
    }

    /** Source and target as lists of [text, kind]; and how many spans there are. */
    corrupted() {
      const { words, sentinels } = this.data;
      const source = [];
      const target = [];
      let spans = 0;
      words.forEach((word, place) => {
        const gone = this.gone.has(place);
        if (gone && !this.gone.has(place - 1)) {
          source.push([sentinels[spans], "sc-mark"]);
          target.push([sentinels[spans], "sc-mark"]);
          spans += 1;
        }
        (gone ? target : source).push([word, gone ? "sc-gone" : "sc-kept"]);
      });
      target.push([sentinels[spans], "sc-mark"]);
      return { source, target, spans };
    }

    render() {
      const { words } = this.data;
      const { source, target, spans } = this.corrupted();
      this.which.mark(this.mask);
      this.buttons.forEach((button, place) => {
        const hidden = this.gone.has(place);
        button.setAttribute("aria-pressed", String(hidden));
        button.setAttribute("aria-label", `${words[place]}, ${hidden ? "hidden" : "shown"}`);
      });
      const chips = (parts) => parts.map(([text, kind]) => make("span", { className: `sc-chip ${kind}` }, text));
      this.source.replaceChildren(...chips(source));
      this.target.replaceChildren(...chips(target));
      const count = (number, name) => `${number} ${name}${number === 1 ? "" : "s"}`;
      this.say(
        `${this.gone.size} of ${count(words.length, "word")} hidden, in ${count(spans, "span")}; source ${source.length}, target ${target.length} tokens.`,
      );
    }
  }

  define("span-explorer", SpanExplorer);
})();
