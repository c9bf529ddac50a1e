/*
 * <cost-explorer>: what a Llama and its caches weigh, how long its next token takes, and what it waits for; made by
 * tfcourse.lessons.explorers.costs. All arithmetic is done here, and tests compare it with tfcourse.llama. Memory is shown in GiB, rates in powers
 * of ten. Sums run at the GPU's rate in bfloat16, however many bytes a number is kept in.
 *
 * Keyboard: a tab stop with arrows for each choice, and native sliders.
 */
(() => {
  "use strict";

  const { Explorer, choice, clamp, define, draw, make, slider } = globalThis.tfcourse;
  const GIB = 2 ** 30;
  const BYTES = [1, 2, 4];
  const SHORTEST = 8; // powers of two
  const LARGEST_BATCH = 10;
  const MOST_CARDS = 32;
  // The chart: its frame in its own units, and powers of ten at its ends.
  const FRAME = { left: 34, right: 312, top: 8, bottom: 158 };
  const ENDS = { x: [-1, 7], y: [11, 15.4] };

  /** A number with three digits, or all of its whole ones: 0.0152, 4.80, 16,384. */
  function short(number) {
    return number >= 999.5 ? Math.round(number).toLocaleString("en-GB") : number.toPrecision(3);
  }

  function plural(number, one, more) {
    return `${number.toLocaleString("en-GB")} ${number === 1 ? one : more}`;
  }

  class CostExplorer extends Explorer {
    static tables = "Sizes and milliseconds as tables";

    build() {
      const { models, cards, start, longest } = this.data;
      Object.assign(this, { model: 0, bytes: 1, card: start.card, length: start.length, batch: 0, many: 1 });
      this.shared = this.published(0);
      const options = { legend: true };
      this.choices = {
        model: choice({
          ...options,
          label: "Model",
          options: models.map(({ name }) => name),
          onChoose: (model) => this.choose({ model, shared: this.published(model) }),
        }),
        bytes: choice({
          ...options,
          label: "Bytes per number",
          options: BYTES.map(String),
          onChoose: (bytes) => this.choose({ bytes }),
        }),
        card: choice({ ...options, label: "GPU", options: cards.map(({ name }) => name), onChoose: (card) => this.choose({ card }) }),
      };
      this.sliders = {
        shared: slider({ label: "key/value heads", max: models[0].shared.length - 1, onInput: (shared) => this.choose({ shared }) }),
        length: slider({ label: "context length", min: SHORTEST, max: longest, onInput: (length) => this.choose({ length }) }),
        batch: slider({ label: "texts in the batch", max: LARGEST_BATCH, onInput: (batch) => this.choose({ batch }) }),
        many: slider({ label: "GPUs", min: 1, max: MOST_CARDS, onInput: (many) => this.choose({ many }) }),
      };
      const elements = (controls) => Object.values(controls).map(({ element }) => element);
      this.bar = make("div", { className: "co-memory" });
      this.counts = make("dl", { className: "co-counts" });
      this.chart = make("div", { className: "co-chart" });
      return [
        make("div", { className: "explorer-controls" }, ...elements(this.choices)),
        make("div", { className: "co-sliders" }, ...elements(this.sliders)),
        this.bar,
        make("div", { className: "co-views" }, this.counts, this.chart),
      ];
    }

    /** Where among the numbers of heads that a model could have the one is that it has. */
    published(model) {
      const { shared, published } = this.data.models[model];
      return shared.findIndex(([heads]) => heads === published);
    }

    /** Everything that is shown, from what is chosen. */
    costs() {
      const model = this.data.models[this.model];
      const card = this.data.cards[this.card];
      const [shared, parameters, multiplied] = model.shared[this.shared];
      const [bytes, length, batch, many] = [BYTES[this.bytes], 2 ** this.length, 2 ** this.batch, this.many];
      const perText = 2 * model.layers * shared * model.width * length * bytes;
      const weights = parameters * bytes; // with the embedding, of which a step reads hardly anything
      const read = multiplied * bytes;
      const caches = batch * perText;
      const looking = 4 * model.layers * model.heads * model.width; // operations for one query and one key, in all layers and heads
      const flops = batch * (2 * multiplied + looking * length);
      const memory = many * card.memory;
      const computing = flops / (many * card.peak);
      const moving = (read + caches) / (many * card.bandwidth);
      const seconds = Math.max(computing, moving);
      const prompt = batch * (2 * multiplied * length + (looking * length * (length + 1)) / 2);
      return {
        model,
        card,
        shared,
        length,
        batch,
        many,
        weights,
        caches,
        memory,
        fits: weights + caches <= memory,
        most: Math.max(0, Math.floor((memory - weights) / perText)),
        computing,
        moving,
        seconds,
        bound: computing >= moving ? "FLOP" : "bytes",
        ridge: card.peak / card.bandwidth,
        points: [
          { name: "weights", intensity: (2 * multiplied * batch) / read },
          { name: "cache", intensity: (batch * looking * length) / caches },
          { name: "prefill", intensity: prompt / (read + caches) },
        ],
      };
    }

    render() {
      const costs = this.costs();
      for (const [name, { mark }] of Object.entries(this.choices)) mark(this[name]);
      const { sliders } = this;
      sliders.shared.element.querySelector("input").max = costs.model.shared.length - 1;
      sliders.shared.mark(this.shared, `${costs.shared} of ${costs.model.heads}`);
      sliders.length.mark(this.length, costs.length.toLocaleString("en-GB"));
      sliders.batch.mark(this.batch, costs.batch.toLocaleString("en-GB"));
      sliders.many.mark(this.many);
      this.drawMemory(costs);
      this.drawCounts(costs);
      this.drawChart(costs);
      this.say(this.describe(costs));
    }

    /** Weights and caches as parts of the memory; what is too much goes beyond its end. */
    drawMemory({ weights, caches, memory, fits }) {
      const whole = Math.max(memory, weights + caches);
      const part = (name, from, size) => {
        const [x, width] = [(100 * from) / whole, (100 * size) / whole].map((number) => number.toFixed(3));
        return draw("rect", { class: `co-${name}`, x, width, y: 0.7, height: 3.6 });
      };
      const end = ((100 * memory) / whole).toFixed(3);
      const picture = draw(
        "svg",
        {
          viewBox: "0 0 100 5",
          preserveAspectRatio: "none",
          role: "img",
          "aria-label": `Memory of ${short(memory / GIB)} GiB: weights ${short(weights / GIB)}, caches ${short(caches / GIB)}.`,
        },
        part("room", 0, memory),
        part("weights", 0, weights),
        part("cache", weights, caches),
        draw("line", { class: "co-end", x1: end, x2: end, y1: 0, y2: 5 }),
      );
      const words = make(
        "p",
        { className: "co-legend" },
        make("span", { className: "co-name co-weights" }, `weights ${short(weights / GIB)} GiB`),
        make("span", { className: "co-name co-cache" }, `caches ${short(caches / GIB)} GiB`),
        make("span", {}, `memory ${short(memory / GIB)} GiB`),
        make("strong", { className: fits ? "co-fits" : "co-much" }, fits ? "fits" : "does not fit"),
      );
      this.bar.replaceChildren(picture, words);
    }

    drawCounts({ most, seconds, batch, computing, moving, bound, ridge }) {
      const row = (name, value) => [make("dt", {}, name), make("dd", {}, value)];
      this.counts.replaceChildren(
        ...row("texts that fit", most.toLocaleString("en-GB")),
        ...row("a token of each text", `${short(1e3 * seconds)} ms`),
        ...row("tokens per second", short(batch / seconds)),
        ...row("time of the FLOP", `${short(1e3 * computing)} ms`),
        ...row("time of the bytes", `${short(1e3 * moving)} ms`),
        ...row("the longer one", bound),
        ...row("ridge of the GPU", `${short(ridge)} FLOP/byte`),
      );
    }

    /** The roof of one GPU, and where on it the weights, the caches and a prompt lie. */
    drawChart({ card, ridge, points }) {
      const log = Math.log10;
      const scale = (value, [low, high], from, to) => from + ((to - from) * (clamp(value, low, high) - low)) / (high - low);
      const x = (value) => scale(log(value), ENDS.x, FRAME.left, FRAME.right);
      const y = (value) => scale(log(value), ENDS.y, FRAME.bottom, FRAME.top);
      const roof = (intensity) => Math.min(card.peak, intensity * card.bandwidth);
      const start = Math.max(10 ** ENDS.x[0], 10 ** ENDS.y[0] / card.bandwidth);
      const corners = [start, ridge, 10 ** ENDS.x[1]].map((at) => `${x(at).toFixed(1)},${y(roof(at)).toFixed(1)}`).join(" ");
      const label = (text, at, anchor = "middle") => draw("text", { class: "co-tick", x: at[0].toFixed(1), y: at[1].toFixed(1), "text-anchor": anchor }, text);
      const grid = [0, 2, 4, 6].flatMap((power) => {
        const at = x(10 ** power);
        return [
          draw("line", { class: "co-grid", x1: at, x2: at, y1: FRAME.top, y2: FRAME.bottom }),
          label(["1", "100", "10⁴", "10⁶"][power / 2], [at, FRAME.bottom + 14]),
        ];
      });
      const levels = [12, 13, 14, 15].flatMap((power, i) => {
        const at = y(10 ** power);
        return [
          draw("line", { class: "co-grid", x1: FRAME.left, x2: FRAME.right, y1: at, y2: at }),
          label(["10¹²", "10¹³", "10¹⁴", "10¹⁵"][i], [FRAME.left - 4, at + 4], "end"),
        ];
      });
      const shapes = { weights: "M-6 0a6 6 0 1 0 12 0a6 6 0 1 0 -12 0", cache: "M-5.5 -5.5h11v11h-11z", prefill: "M0 -7L6.5 5H-6.5z" };
      const shape = (name, at) => draw("path", { class: `co-point co-${name}`, d: shapes[name], transform: `translate(${at})` });
      const marks = points.map(({ name, intensity }) => {
        const mark = shape(name, `${x(intensity).toFixed(1)} ${y(roof(intensity)).toFixed(1)}`);
        mark.dataset.intensity = intensity;
        return mark;
      });
      const said = points.map(({ name, intensity }) => `${name} ${short(intensity)}`).join(", ");
      const picture = draw(
        "svg",
        { viewBox: "0 0 320 196", role: "img", "aria-label": `Roofline of one ${card.name}: FLOP per second by FLOP per byte. ${said}; ridge ${short(ridge)}.` },
        ...grid,
        ...levels,
        draw("line", { class: "co-ridge", x1: x(ridge), x2: x(ridge), y1: y(card.peak), y2: FRAME.bottom }),
        draw("polyline", { class: "co-roof", points: corners }),
        ...marks,
        label("FLOP per byte (arithmetic intensity)", [(FRAME.left + FRAME.right) / 2, FRAME.bottom + 32]),
      );
      const legend = points.map(({ name, intensity }) =>
        make(
          "span",
          { className: `co-key co-key-${name}` },
          draw("svg", { viewBox: "-9 -9 18 18", "aria-hidden": "true" }, shape(name, "0 0")),
          `${name} ${short(intensity)}`,
        ),
      );
      this.chart.replaceChildren(
        make("p", { className: "co-title" }, "FLOP per second that one GPU can reach"),
        picture,
        make("p", { className: "co-legend" }, ...legend),
      );
    }

    /** What the figure shows, in three sentences. */
    describe({ model, card, shared, length, batch, many, fits, most, seconds, bound }) {
      const room = fits ? "it fits" : "it does not fit";
      const others = most ? `${plural(most, "such text", "such texts")} would` : "not even one such text would";
      return (
        `${model.name} with ${plural(shared, "key/value head", "key/value heads")}, ${plural(batch, "text", "texts")} of ` +
        `${length.toLocaleString("en-GB")} tokens on ${many} × ${card.name}: ${room}; ${others}. ` +
        `A token of each text takes ${short(1e3 * seconds)} ms. The ${bound} take longer.`
      );
    }
  }

  define("cost-explorer", CostExplorer);
})();
