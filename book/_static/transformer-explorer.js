/*
 * <transformer-explorer>: a Transformer layer with every tensor's shape, or position encodings with the dot products of their rows.
 * tfcourse.explorers.blocks writes the element with its data as JSON and plain tables; this script puts an interactive figure in front of
 * the tables. No dependency, no request: it works from file:// as well.
 *
 * Keyboard: sizes, positions and kinds are native fields; the parts of a layer are one tab stop, in which the arrows move. What is shown
 * is said in a sentence below the figure, which is a live region.
 */
(() => {
  "use strict";

  const SVG = "http://www.w3.org/2000/svg";
  const LARGEST = { B: 4096, T: 1000000, S: 1000000, D: 65536, H: 1024, F: 262144 };
  const MEANING = {
    B: "batch",
    T: "target length, the decoder's",
    S: "source length, the encoder's",
    D: "model width",
    H: "heads",
    F: "feed-forward width",
  };
  let figures = 0; // numbers the figures of a page, for names of radio groups

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

  const grouped = (number) => number.toLocaleString("en-GB");
  const product = (numbers) => numbers.reduce((all, number) => all * number, 1);
  const plural = (number, one) => `${grouped(number)} ${one}${number === 1 ? "" : "s"}`;

  /** A number to two decimals, without a minus in front of zero. */
  function decimal(number) {
    const text = number.toFixed(2);
    return (text === "-0.00" ? "0.00" : text).replace("-", "\u2212");
  }

  /** A group of native radio buttons under a heading. */
  function choice(legend, name, options, chosen, onChoose) {
    const buttons = options.map(([value, label]) =>
      make(
        "label",
        { className: "te-option" },
        make("input", { type: "radio", name, value, checked: value === chosen, change: () => onChoose(value) }),
        label,
      ),
    );
    return make("fieldset", { className: "te-choice" }, make("legend", {}, legend), ...buttons);
  }

  /** The layer: its parts from top to bottom, arrows with shapes between them, residual connections around them. */
  class Block {
    constructor(data, number) {
      this.data = data;
      this.sizes = { ...data.sizes };
      this.kind = { ...data.start };
      this.chosen = 0;
      this.live = make("p", { className: "te-live", role: "status", "aria-live": "polite", "aria-atomic": "true" });
      this.number = number;
      this.flow = make("div", {
        className: "te-flow",
        role: "radiogroup",
        "aria-label": "Part of the layer",
        keydown: (event) => this.onKey(event),
      });
      this.details = make("div", { className: "te-details" });
    }

    build() {
      const kinds = make(
        "div",
        { className: "te-choices" },
        choice("Layer", `te-layer-${this.number}`, [["encoder", "encoder"], ["decoder", "decoder"]], this.kind.layer, (layer) => {
          this.kind.layer = layer;
          this.show();
        }),
        choice("Layer norm", `te-norm-${this.number}`, [["post", "post-norm"], ["pre", "pre-norm"]], this.kind.norm, (norm) => {
          this.kind.norm = norm;
          this.show();
        }),
      );
      this.fields = Object.fromEntries(Object.keys(this.sizes).map((letter) => [letter, this.buildField(letter)]));
      this.complaint = make("p", { className: "te-complaint", role: "alert" });
      const sizes = make(
        "fieldset",
        { className: "te-sizes" },
        make("legend", {}, "Sizes"),
        ...Object.values(this.fields).map((field) => field.label),
      );
      this.show();
      const panels = make("div", { className: "te-panels" }, this.flow, this.details);
      return [make("div", { className: "te-controls" }, kinds, sizes), this.complaint, panels, this.live];
    }

    buildField(letter) {
      const input = make("input", {
        type: "number",
        min: 1,
        max: LARGEST[letter],
        step: 1,
        value: this.sizes[letter],
        "aria-label": `${letter}, ${MEANING[letter]}`,
        title: MEANING[letter],
        input: () => this.read(),
      });
      return { input, label: make("label", { className: "te-size" }, make("span", { "aria-hidden": "true" }, letter), input) };
    }

    /** Take the sizes from their fields if they make a layer; else say why not, and keep the last ones. */
    read() {
      const asked = Object.fromEntries(Object.entries(this.fields).map(([letter, { input }]) => [letter, Number(input.value)]));
      const odd = Object.entries(asked).find(([letter, size]) => !Number.isInteger(size) || size < 1 || size > LARGEST[letter]);
      let complaint = "";
      if (odd) complaint = `${odd[0]} is a whole number from 1 to ${grouped(LARGEST[odd[0]])}.`;
      else if (asked.D % asked.H) complaint = `A width of ${asked.D} cannot be divided into ${plural(asked.H, "head")}.`;
      for (const [letter, { input }] of Object.entries(this.fields)) {
        const wrong = odd ? letter === odd[0] : complaint !== "" && (letter === "D" || letter === "H");
        if (wrong) input.setAttribute("aria-invalid", "true");
        else input.removeAttribute("aria-invalid");
      }
      if (this.complaint.textContent !== complaint) this.complaint.textContent = complaint;
      if (complaint) return;
      this.sizes = asked;
      this.show();
    }

    size(letter) {
      if (letter === "1") return 1;
      return letter === "Dh" ? this.sizes.D / this.sizes.H : this.sizes[letter];
    }

    numbers(shape) {
      return `(${shape.map((letter) => grouped(this.size(letter))).join(", ")})`;
    }

    letters(shape) {
      return `(${shape.join(", ")})`;
    }

    count(part) {
      return part.weights.reduce((sum, [, shape]) => sum + product(shape.map((letter) => this.size(letter))), 0);
    }

    get stretches() {
      return this.data.layers[`${this.kind.layer} ${this.kind.norm}`];
    }

    get parts() {
      return this.stretches.flatMap((stretch) => stretch.parts);
    }

    show() {
      this.fields.T.input.disabled = this.kind.layer === "encoder"; // which has never heard of a target
      this.chosen = Math.min(this.chosen, this.parts.length - 1);
      const output = (part) => part.tensors[part.tensors.length - 1][1];
      const arrow = (shape) =>
        make(
          "div",
          { className: "te-arrow", "aria-hidden": "true" },
          make("span", { className: "te-letters" }, this.letters(shape)),
          make("span", { className: "te-numbers" }, this.numbers(shape)),
        );
      let place = 0;
      this.radios = [];
      const whole = this.stretches.map((stretch) => {
        const inside = stretch.parts.flatMap((part) => {
          const radio = this.buildPart(part, place++, output(part));
          this.radios.push(radio);
          const side = part.name === "Cross-attention" ? [this.buildSide(part.also[0])] : [];
          return [...side, radio, arrow(output(part))];
        });
        if (!stretch.bypass) return make("div", { className: "te-stretch" }, ...inside);
        // The arrow that leaves the sum stands outside of the bracket that closes at the sum.
        const after = inside.pop();
        const bracket = make("div", { className: "te-bypass" }, ...inside, make("span", { className: "te-carried", "aria-hidden": "true" }));
        return make("div", { className: "te-stretch" }, bracket, after);
      });
      this.flow.replaceChildren(arrow(["B", this.kind.layer === "encoder" ? "S" : "T", "D"]), ...whole);
      this.choose(this.chosen);
    }

    buildSide([name, shape]) {
      return make("div", { className: "te-side", "aria-hidden": "true" }, `${name} `, make("b", {}, this.letters(shape)), ` ${this.numbers(shape)} \u2193`);
    }

    buildPart(part, place, shape) {
      return make(
        "button",
        {
          type: "button",
          className: `te-part te-${part.name.toLowerCase().replace(/[^a-z]+/g, "-")}`,
          role: "radio",
          "aria-label": `${part.name}, part ${place + 1} of ${this.parts.length}, output ${this.numbers(shape)}`,
          click: () => this.choose(place),
        },
        part.name === "Add" ? "+" : part.name,
      );
    }

    onKey(event) {
      const last = this.parts.length - 1;
      const moves = {
        ArrowUp: Math.max(this.chosen - 1, 0),
        ArrowLeft: Math.max(this.chosen - 1, 0),
        ArrowDown: Math.min(this.chosen + 1, last),
        ArrowRight: Math.min(this.chosen + 1, last),
        Home: 0,
        End: last,
      };
      if (event.altKey || event.ctrlKey || event.metaKey || !Object.hasOwn(moves, event.key)) return;
      event.preventDefault(); // the arrows would scroll the page
      this.choose(moves[event.key]);
      this.radios[this.chosen].focus();
    }

    choose(place) {
      this.chosen = place;
      this.radios.forEach((radio, index) => {
        radio.setAttribute("aria-checked", String(index === place));
        radio.tabIndex = index === place ? 0 : -1;
      });
      const part = this.parts[place];
      const row = ([label, shape]) => {
        const cells = [this.letters(shape), this.numbers(shape)].map((text) => make("td", {}, text));
        return make("tr", {}, make("th", { scope: "row" }, label), ...cells);
      };
      const table = (title, rows) =>
        rows.length
          ? [make("table", {}, make("caption", {}, title), make("tbody", {}, ...rows.map(row)))]
          : [];
      this.details.replaceChildren(
        make("p", { className: "te-heading" }, part.name),
        make("p", { className: "te-about" }, `It ${part.about}.`),
        ...table("also comes in", part.also),
        ...table("tensors on the way", part.tensors),
        ...table("parameters", part.weights.map(([name, shape]) => [name.slice(name.indexOf(".") + 1), shape])),
      );
      this.say(part);
    }

    /** What the figure shows, in a few words. */
    say(part) {
      const scores = part.tensors.find(([label]) => label === "scores");
      const own = this.count(part);
      const total = this.parts.reduce((sum, each) => sum + this.count(each), 0);
      const holds = scores ? ` Its attention weights are ${grouped(product(scores[1].map((letter) => this.size(letter))))} numbers.` : "";
      const sentence =
        `${part.name} ${own ? `has ${plural(own, "parameter")}` : "has no parameters"}` +
        ` of the layer\u2019s ${grouped(total)}.${holds}`;
      if (this.live.textContent !== sentence) this.live.textContent = sentence;
    }
  }

  /** Position encodings: the matrix on the left, the dot products of a chosen row with all rows on the right. */
  class Positions {
    constructor(data, number) {
      this.data = data;
      this.number = number;
      this.encoding = 0;
      Object.assign(this, data.start);
      this.live = make("p", { className: "te-live", role: "status", "aria-live": "polite", "aria-atomic": "true" });
      for (const encoding of data.encodings) {
        const { rows } = encoding;
        encoding.products = rows.map((row) => rows.map((other) => row.reduce((sum, value, column) => sum + value * other[column], 0)));
        encoding.largest = Math.max(...rows.flat().map(Math.abs)) || 1;
      }
    }

    build() {
      const { encodings } = this.data;
      const last = encodings[0].rows.length - 1;
      const options = encodings.map(({ name }, index) => [String(index), name]);
      const kinds =
        encodings.length < 2
          ? []
          : [
              choice("Encoding", `te-encoding-${this.number}`, options, String(this.encoding), (value) => {
                this.encoding = Number(value);
                this.show();
              }),
            ];
      const slider = (name, label) => {
        const value = make("output", { className: "te-value" });
        const change = ({ target }) => {
          this[name] = Number(target.value);
          this.mark();
        };
        const input = make("input", { type: "range", min: 0, max: last, step: 1, value: this[name], input: change });
        return { value, element: make("label", { className: "te-slider" }, make("span", {}, label), input, value) };
      };
      this.sliders = { first: slider("first", "position m"), second: slider("second", "position n") };
      this.matrix = make("div", { className: "te-matrix" });
      this.chart = make("div", { className: "te-chart" });
      this.show();
      const sliders = make("div", { className: "te-sliders" }, ...Object.values(this.sliders).map(({ element }) => element));
      const controls = make("div", { className: "te-controls" }, ...kinds, sliders);
      return [controls, make("div", { className: "te-views" }, this.matrix, this.chart), this.live];
    }

    show() {
      const { name, rows, products, largest } = this.data.encodings[this.encoding];
      const [height, width] = [rows.length, rows[0].length];
      const cells = rows.flatMap((row, y) =>
        row.map((value, x) =>
          draw("rect", {
            x,
            y,
            width: 1,
            height: 1,
            class: value < 0 ? "te-negative" : "te-positive",
            "fill-opacity": (Math.abs(value) / largest).toFixed(2),
          }),
        ),
      );
      this.markers = ["first", "second"].map((which) => draw("rect", { class: `te-row te-${which}`, x: 0, width, height: 1 }));
      const picture = draw(
        "svg",
        {
          viewBox: `-0.3 -0.3 ${width + 0.6} ${height + 0.6}`,
          preserveAspectRatio: "none",
          role: "img",
          "aria-label": `${name}: ${height} positions from top to bottom, ${width} columns. Blue is positive, orange negative.`,
        },
        ...cells,
        ...this.markers,
      );
      const title = (text) => make("p", { className: "te-column" }, text);
      this.matrix.replaceChildren(title("one row a position, one column a feature"), picture);

      const all = products.flat();
      const [low, high] = [Math.min(0, ...all), Math.max(...all)];
      this.at = (distance, value) => [50 + (46 * distance) / (height - 1 || 1), 4 + (92 * (high - value)) / (high - low || 1)];
      const line = (values, position) => values.map((value, j) => this.at(j - position, value).map((c) => c.toFixed(2)).join(",")).join(" ");
      const others = products.map((values, position) => draw("polyline", { class: "te-other", points: line(values, position) }));
      this.curve = draw("polyline", { class: "te-curve" });
      this.line = (position) => line(products[position], position);
      this.dot = draw("path", { class: "te-dot" });
      const zero = this.at(0, 0)[1];
      const axes = [
        draw("line", { class: "te-axis", x1: 2, x2: 98, y1: zero, y2: zero }),
        draw("line", { class: "te-axis", x1: 50, x2: 50, y1: 2, y2: 98 }),
      ];
      const plot = draw(
        "svg",
        {
          viewBox: "0 0 100 100",
          preserveAspectRatio: "none",
          role: "img",
          "aria-label":
            `${name}: dot product of position m with every position n, against the distance n minus m, ` +
            `from ${1 - height} to ${height - 1}; values from ${decimal(low)} to ${decimal(high)}.`,
        },
        ...axes,
        ...others,
        this.curve,
        this.dot,
      );
      const scale = make(
        "p",
        { className: "te-scale", "aria-hidden": "true" },
        make("span", {}, `\u2212${height - 1}`),
        make("span", {}, "distance n \u2212 m"),
        make("span", {}, `${height - 1}`),
      );
      this.chart.replaceChildren(
        title(`dot products with m, up to ${decimal(high)}; faint: other m`),
        plot,
        scale,
      );
      this.mark();
    }

    mark() {
      const { name, products } = this.data.encodings[this.encoding];
      const { first, second } = this;
      this.markers[0].setAttribute("y", first);
      this.markers[1].setAttribute("y", second);
      for (const which of ["first", "second"]) this.sliders[which].value.textContent = this[which];
      this.curve.setAttribute("points", this.line(first));
      const [x, y] = this.at(second - first, products[first][second]);
      this.dot.setAttribute("d", `M${x.toFixed(2)} ${y.toFixed(2)}h0`);

      const distance = Math.abs(second - first);
      const alike = products.slice(distance).map((row, index) => row[index]);
      const [low, high] = [Math.min(...alike), Math.max(...alike)];
      const here = `${name}: positions ${first} and ${second} have the dot product ${decimal(products[first][second])}.`;
      let rest;
      if (alike.length === 1) rest = "No other two are as far apart.";
      else if (high - low < 0.005) rest = `So have all ${alike.length} pairs ${distance} apart: only the distance counts.`;
      else rest = `Among the ${alike.length} pairs ${distance} apart it goes from ${decimal(low)} to ${decimal(high)}.`;
      const sentence = `${here} ${rest}`;
      if (this.live.textContent !== sentence) this.live.textContent = sentence;
    }
  }

  class TransformerExplorer extends HTMLElement {
    connectedCallback() {
      if (this.querySelector(":scope > .te")) return;
      // While the page is being parsed, the element is connected before its content is there.
      if (document.readyState === "loading") {
        document.addEventListener("DOMContentLoaded", () => this.upgrade(), { once: true });
      } else {
        this.upgrade();
      }
    }

    upgrade() {
      const source = this.querySelector(':scope > script[type="application/json"]');
      if (!source || this.querySelector(":scope > .te")) return;
      let data;
      try {
        data = JSON.parse(source.textContent);
      } catch {
        return; // the tables stay
      }
      const Kind = { block: Block, positions: Positions }[data.figure];
      if (!Kind) return;
      const figure = make(
        "figure",
        { className: "te", role: "group", "aria-label": data.caption },
        ...new Kind(data, ++figures).build(),
        make("figcaption", { className: "te-caption" }, data.caption),
      );
      const plain = this.querySelector(":scope > .te-plain");
      this.insertBefore(figure, plain || null);
      if (plain) this.fold(plain);
    }

    /** The tables stay at hand for whoever prefers numbers, folded away below the figure. */
    fold(plain) {
      plain.querySelector(":scope > figcaption")?.remove();
      const all = make("details", { className: "te-all" }, make("summary", {}, "Everything as tables"));
      plain.replaceWith(all);
      all.append(plain);
    }
  }

  if (!customElements.get("transformer-explorer")) customElements.define("transformer-explorer", TransformerExplorer);
})();
