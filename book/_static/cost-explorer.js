/*
 * <cost-explorer>: what writing costs, made by tfcourse.explorers.costs. Bytes of weights and caches against the memory, milliseconds a
 * word, and a roofline: how many operations a second are possible, by how many there are for each byte.
 *
 * Keyboard: a tab stop with arrows for each choice, and native sliders.
 */
(() => {
  "use strict";

  const { Explorer, choice, define, draw, make, slider } = globalThis.tfcourse;
  const GIB = 2 ** 30;
  const LEAST = 0.25; // operations a byte at the left edge of the roofline
  const MOST = 2 ** 16;

  /** Three digits that count, with commas from a thousand on. */
  function digits(number) {
    if (number >= 100) return Math.round(number).toLocaleString("en");
    return number === 0 ? "0" : String(Number(number.toPrecision(3)));
  }

  class CostExplorer extends Explorer {
    static tables = "One text on one card, as a table";

    build() {
      const { models, cards, widths, lengths, batches, mostCards } = this.data;
      const usual = Math.max(lengths.indexOf(8192), 0);
      Object.assign(this, { model: 0, card: Math.min(1, cards.length - 1), width: 0, length: usual, batch: 0, cards: 1 });
      this.groups = this.publishedGroups();
      const options = { legend: true };
      const names = (things) => things.map(({ name }) => name);
      this.choices = {
        model: choice({ ...options, label: "Model", options: names(models), onChoose: (model) => this.chooseModel(model) }),
        card: choice({ ...options, label: "Card", options: names(cards), onChoose: (card) => this.choose({ card }) }),
        width: choice({ ...options, label: "Bytes a number", options: widths.map(String), onChoose: (width) => this.choose({ width }) }),
      };
      this.sliderPlace = make("div", { className: "ce-sliders" });
      this.sliders = {
        length: slider({ label: "context, tokens", max: lengths.length - 1, onInput: (length) => this.choose({ length }) }),
        batch: slider({ label: "texts at a time", max: batches.length - 1, onInput: (batch) => this.choose({ batch }) }),
        cards: slider({ label: "cards", min: 1, max: mostCards, onInput: (number) => this.choose({ cards: number }) }),
      };
      this.memory = make("div", { className: "ce-memory" });
      this.figures = make("dl", { className: "ce-figures" });
      this.roofline = make("div", { className: "ce-roofline" });
      this.makeGroups();
      const elements = (controls) => Object.values(controls).map(({ element }) => element);
      return [
        make("div", { className: "explorer-controls" }, ...elements(this.choices)),
        this.sliderPlace,
        make("div", { className: "ce-views" }, make("div", {}, this.memory, this.figures), this.roofline),
      ];
    }

    publishedGroups() {
      const { groups, published } = this.data.models[this.model];
      return groups.findIndex(([number]) => number === published);
    }

    /** The slider of G has as many places as the model's heads have divisors. */
    makeGroups() {
      const { groups } = this.data.models[this.model];
      this.groupSlider = slider({ label: "heads of keys G", max: groups.length - 1, onInput: (place) => this.choose({ groups: place }) });
      this.sliderPlace.replaceChildren(...[this.groupSlider, ...Object.values(this.sliders)].map(({ element }) => element));
    }

    chooseModel(model) {
      this.model = model;
      this.groups = this.publishedGroups();
      this.makeGroups();
      this.choose({});
    }

    /** All that is shown, in bytes, seconds and operations. */
    get reading() {
      const { models, cards, widths, lengths, batches } = this.data;
      const { layers, heads, width: headWidth, groups } = models[this.model];
      const [shared, every, read] = groups[this.groups];
      const { peak, bandwidth, memory } = cards[this.card];
      const [width, length, batch] = [widths[this.width], lengths[this.length], batches[this.batch]];
      const one = 2 * layers * shared * headWidth * length * width;
      const flops = batch * (2 * read + 4 * layers * heads * headWidth * length);
      const moved = read * width + batch * one;
      const [computing, reading] = [flops / (this.cards * peak), moved / (this.cards * bandwidth)];
      const room = this.cards * memory - every * width;
      const prompt = 2 * read * length + 2 * layers * heads * headWidth * length ** 2;
      return {
        shared,
        length,
        batch,
        weights: every * width,
        caches: batch * one,
        memory: this.cards * memory,
        fits: Math.max(0, Math.floor(room / one)),
        seconds: Math.max(computing, reading),
        bound: computing >= reading ? "compute" : "bandwidth",
        points: [
          ["weights", (2 * batch) / width],
          ["caches", (2 * heads) / shared / width],
          ["prompt", prompt / (read * width + one)],
        ],
      };
    }

    render() {
      for (const [name, { mark }] of Object.entries(this.choices)) mark(this[name]);
      const seen = this.reading;
      this.groupSlider.mark(this.groups, String(seen.shared));
      this.sliders.length.mark(this.length, seen.length.toLocaleString("en"));
      this.sliders.batch.mark(this.batch, seen.batch.toLocaleString("en"));
      this.sliders.cards.mark(this.cards);
      this.drawMemory(seen);
      this.drawFigures(seen);
      this.drawRoofline(seen);
      this.say(this.describe(seen));
    }

    /** Weights and caches as a bar beside the memory; what does not fit is hatched. */
    drawMemory({ weights, caches, memory, fits, batch }) {
      const whole = Math.max(memory, weights + caches);
      const part = (name, bytes) => {
        const element = make("span", { className: `ce-part ce-${name}` });
        element.style.width = `${((100 * bytes) / whole).toFixed(2)}%`;
        return element;
      };
      const mark = make("span", { className: "ce-edge" });
      mark.style.left = `${((100 * memory) / whole).toFixed(2)}%`;
      const bar = make("div", { className: fits >= batch ? "ce-bar" : "ce-bar ce-over", "aria-hidden": "true" }, part("weights", weights), part("caches", caches), mark);
      const legend = make(
        "p",
        { className: "ce-legend" },
        make("span", { className: "ce-key ce-weights" }, "weights"),
        " \u00b7 ",
        make("span", { className: "ce-key ce-caches" }, "caches"),
        ` \u00b7 ${fits >= batch ? "both fit" : "does not fit"}`,
      );
      this.memory.replaceChildren(make("p", { className: "ce-title" }, `memory: ${digits(memory / GIB)} GiB`), bar, legend);
    }

    drawFigures({ weights, caches, fits, seconds, batch, bound }) {
      const rows = [
        ["weights", `${digits(weights / GIB)} GiB`],
        ["caches", `${digits(caches / GIB)} GiB`],
        ["texts that fit", fits.toLocaleString("en")],
        ["a step", `${digits(1000 * seconds)} ms`],
        ["words a second", digits(batch / seconds)],
        ["slower clock", bound],
      ];
      this.figures.replaceChildren(...rows.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, value)]));
    }

    /** The roof of one card, and where reading weights, reading caches and reading a prompt stand below it. */
    drawRoofline({ points }) {
      const { peak, bandwidth } = this.data.cards[this.card];
      const [low, high] = [LEAST * bandwidth, 2 * peak];
      const x = (intensity) => (100 * Math.log(Math.min(Math.max(intensity, LEAST), MOST) / LEAST)) / Math.log(MOST / LEAST);
      const y = (speed) => 96 - (92 * Math.log(speed / low)) / Math.log(high / low);
      const roof = (intensity) => Math.min(peak, intensity * bandwidth);
      const corner = peak / bandwidth;
      const line = [LEAST, corner, MOST].map((at) => `${x(at).toFixed(2)},${y(roof(at)).toFixed(2)}`).join(" ");
      const dots = points.map(([name, intensity]) =>
        draw("path", { class: `ce-dot ce-${name}`, d: `M${x(intensity).toFixed(2)} ${y(roof(intensity)).toFixed(2)}h0` }),
      );
      const told = points.map(([name, intensity]) => `${name} ${digits(intensity)}`).join(", ");
      const picture = draw(
        "svg",
        {
          viewBox: "0 0 100 100",
          preserveAspectRatio: "none",
          role: "img",
          "aria-label": `Roofline of a card: operations a second rise up to ${digits(corner)} operations a byte, and are level from there. Operations a byte: ${told}.`,
        },
        draw("line", { class: "ce-corner", x1: x(corner), x2: x(corner), y1: 2, y2: 98 }),
        draw("polyline", { class: "ce-roof", points: line }),
        ...dots,
      );
      const scale = make(
        "p",
        { className: "ce-scale", "aria-hidden": "true" },
        make("span", {}, "\u00bc"),
        make("span", {}, "operations a byte"),
        make("span", {}, MOST.toLocaleString("en")),
      );
      const legend = make(
        "p",
        { className: "ce-legend" },
        ...points.flatMap(([name, intensity], index) => [
          ...(index ? [" \u00b7 "] : []),
          make("span", { className: `ce-key ce-${name}` }, `${name} ${digits(intensity)}`),
        ]),
      );
      this.roofline.replaceChildren(make("p", { className: "ce-title" }, `roofline of one card; its corner: ${digits(corner)}`), picture, scale, legend);
    }

    /** What the figure shows, in three sentences. */
    describe({ shared, length, batch, weights, caches, memory, fits, seconds, bound }) {
      const { models, cards, widths } = this.data;
      const many = batch === 1 ? "1 text" : `${batch.toLocaleString("en")} texts`;
      return (
        `${models[this.model].name} with ${shared} heads of keys, ${many} of ${length.toLocaleString("en")} tokens, ${widths[this.width]} bytes a number, ` +
        `${this.cards} ${cards[this.card].name}: weights ${digits(weights / GIB)} GiB and caches ${digits(caches / GIB)} GiB of ${digits(memory / GIB)} GiB; ` +
        `${fits.toLocaleString("en")} texts fit. A step takes ${digits(1000 * seconds)} ms, ${digits(batch / seconds)} words a second; the slower clock is ${bound}.`
      );
    }
  }

  define("cost-explorer", CostExplorer);
})();
