/*
 * <sampler-explorer>: samplers as cards, in any order, over a distribution; made by tfcourse.lessons.explorers.samplers.
 *
 * The samplers are computed here as tfcourse.sampling computes them: logits in, logits out, -Infinity for what is excluded. Cut-offs are
 * values, so that equal logits share one fate. Cards are moved by drag, or by the buttons "up" and "down" on each.
 */
(() => {
  "use strict";

  const { Explorer, define, make, slider } = globalThis.tfcourse;

  const largest = (logits) => Math.max(...logits);
  const kept = (logits) => logits.filter((logit) => logit > -Infinity);
  const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);

  function probabilities(logits) {
    const top = largest(logits);
    const powers = logits.map((logit) => Math.exp(logit - top));
    const total = sum(powers);
    return powers.map((power) => power / total);
  }

  /** In nats. */
  function entropy(logits) {
    return -sum(probabilities(logits).map((p) => (p > 0 ? p * Math.log(p) : 0)));
  }

  /** Leave what passes, exclude all else. */
  function keep(logits, passes) {
    return logits.map((logit, place) => (passes(logit, place) ? logit : -Infinity));
  }

  function sorted(logits) {
    return [...logits].sort((a, b) => b - a);
  }

  const RULES = {
    temperature: (logits, { t }) => logits.map((logit) => logit / t),

    top_k(logits, { k }) {
      const least = sorted(logits)[Math.min(k, logits.length) - 1];
      return keep(logits, (logit) => logit >= least);
    },

    top_p(logits, { p }) {
      if (p >= 1) return [...logits];
      const ordered = sorted(logits);
      let before = 0;
      let least = Infinity;
      probabilities(ordered).forEach((share, place) => {
        if (before < p * (1 - 1e-6)) least = Math.min(least, ordered[place]);
        before += share;
      });
      return keep(logits, (logit) => logit >= least);
    },

    min_p(logits, { p }) {
      const top = largest(logits);
      return keep(logits, (logit) => Math.exp(logit - top) >= p);
    },

    top_a(logits, { a }) {
      const shares = probabilities(logits);
      const threshold = a * Math.max(...shares) ** 2;
      return keep(logits, (_, place) => shares[place] >= threshold);
    },

    top_n_sigma(logits, { n }) {
      const counted = kept(logits);
      const mean = sum(counted) / counted.length;
      const deviation = Math.sqrt(sum(counted.map((logit) => (logit - mean) ** 2)) / counted.length);
      const least = largest(logits) - n * deviation;
      return keep(logits, (logit) => logit >= least);
    },

    tail_free(logits, { z }) {
      const ordered = sorted(logits);
      const shares = probabilities(ordered);
      const bends = shares.slice(2).map((share, place) => Math.abs(share - 2 * shares[place + 1] + shares[place]));
      const limit = z * sum(bends);
      let running = 0;
      const last = bends.findIndex((bend) => (running += bend) > limit);
      return last < 0 ? [...logits] : keep(logits, (logit) => logit >= ordered[last]);
    },

    epsilon_cutoff(logits, { epsilon }) {
      const shares = probabilities(logits);
      const top = largest(logits);
      return keep(logits, (logit, place) => logit === top || shares[place] >= epsilon);
    },

    eta_cutoff(logits, { epsilon }) {
      const shares = probabilities(logits);
      const threshold = Math.min(epsilon, Math.sqrt(epsilon) * Math.exp(-entropy(logits)));
      return keep(logits, (_, place) => shares[place] >= threshold);
    },

    locally_typical(logits, { mass }) {
      const expected = entropy(logits);
      const shares = probabilities(logits);
      const distances = shares.map((p) => Math.abs(-Math.log(p) - expected)); // Infinity where p is 0
      const order = shares.map((_, place) => place).sort((a, b) => distances[a] - distances[b]);
      let before = 0;
      let farthest = -Infinity;
      for (const place of order) {
        if (before < mass) farthest = Math.max(farthest, distances[place]);
        before += shares[place];
      }
      return keep(logits, (_, place) => distances[place] <= farthest);
    },

    quadratic(logits, { factor: half, curve: bend }) {
      const top = largest(logits);
      const [square, cube] = [half * 0.5 * (3 - bend), half * 0.5 * (bend - 1)];
      return logits.map((logit) => {
        if (logit === -Infinity) return logit;
        const below = logit - top;
        return top - square * below ** 2 + cube * below ** 3;
      });
    },

    dynamic_temperature(logits, { low, high }) {
      const count = kept(logits).length;
      const share = entropy(logits) / Math.log(Math.max(count, 2));
      return logits.map((logit) => logit / (low + (high - low) * share));
    },

    exclude_top_choices(logits, { threshold, probability }) {
      if (!probability) return [...logits]; // the coin is a switch here
      const obvious = probabilities(logits).map((share) => share >= threshold);
      const least = Math.min(...logits.filter((_, place) => obvious[place]), Infinity);
      return keep(logits, (logit, place) => !(obvious[place] && logit > least));
    },
  };

  class SamplerExplorer extends Explorer {
    static tables = "The model's probabilities as tables";

    /** What a chain of [name, settings] makes of logits. */
    static apply(logits, chain) {
      return chain.reduce((now, [name, values]) => RULES[name](now, values), logits);
    }

    build() {
      const { names, samplers, chain } = this.data;
      this.chosen = 0;
      const on = new Map(chain);
      const order = [...on.keys(), ...Object.keys(samplers).filter((name) => !on.has(name))];
      this.cards = order.map((name) => this.card(name, on.get(name)));
      this.choices = this.choice_of(names);
      this.list = make("ol", { className: "se-cards", "aria-label": "Samplers, in the order in which they work" });
      this.bars = make("div", { className: "se-bars" });
      this.note = make("p", { className: "se-note explorer-legend" });
      return [
        ...(names.length > 1 ? [this.choices.element] : []),
        make("div", { className: "se-views" }, this.list, make("div", {}, this.bars, this.note)),
      ];
    }

    choice_of(names) {
      const { choice } = globalThis.tfcourse;
      return choice({ label: "Distribution", options: names, onChoose: (chosen) => this.choose({ chosen }) });
    }

    card(name, values) {
      const { title, settings } = this.data.samplers[name];
      const start = Object.fromEntries(Object.entries(settings).map(([setting, spec]) => [setting, values?.[setting] ?? spec[3]]));
      const card = { name, title, values: start, active: Boolean(values) };
      const toggle = () => {
        card.active = card.box.checked;
        this.render();
      };
      card.box = make("input", { type: "checkbox", change: toggle });
      card.sliders = Object.entries(settings).map(([setting, [min, max, step]]) => {
        const onInput = (value) => {
          card.values[setting] = value;
          this.render();
        };
        return [setting, slider({ label: setting === "probability" ? "coin" : setting, min, max, step, onInput })];
      });
      const move = (by) => make("button", { type: "button", className: "explorer-option se-move", click: () => this.move(card, by) });
      [card.up, card.down] = [move(-1), move(1)];
      card.up.textContent = "↑";
      card.down.textContent = "↓";
      card.up.setAttribute("aria-label", `${title} up`);
      card.down.setAttribute("aria-label", `${title} down`);
      card.state = make("span", { className: "se-state" });
      const head = make(
        "div",
        { className: "se-head" },
        make("label", { className: "se-name" }, card.box, make("span", {}, title)),
        card.state,
        card.up,
        card.down,
      );
      card.body = make("div", { className: "se-body" }, ...card.sliders.map(([, part]) => part.element));
      card.element = make("li", { className: "se-card" }, head, card.body);
      this.makeDraggable(card);
      return card;
    }

    makeDraggable(card) {
      const { element } = card;
      element.draggable = true;
      element.addEventListener("dragstart", (event) => {
        if (event.target !== element) return;
        this.dragged = card;
        event.dataTransfer.effectAllowed = "move";
        event.dataTransfer.setData("text/plain", card.name);
      });
      element.addEventListener("dragover", (event) => {
        if (this.dragged) event.preventDefault();
      });
      element.addEventListener("drop", (event) => {
        event.preventDefault();
        if (this.dragged && this.dragged !== card) this.put(this.dragged, this.cards.indexOf(card));
        this.dragged = null;
      });
      element.addEventListener("dragend", () => (this.dragged = null));
      // A slider inside of a draggable part would drag the part.
      card.body.addEventListener("pointerdown", () => (element.draggable = false));
      element.addEventListener("pointerup", () => (element.draggable = true));
    }

    move(card, by) {
      const place = this.cards.indexOf(card) + by;
      if (place < 0 || place >= this.cards.length) return;
      this.put(card, place);
      (by < 0 ? card.up : card.down).focus();
    }

    put(card, place) {
      this.cards.splice(this.cards.indexOf(card), 1);
      this.cards.splice(place, 0, card);
      this.render();
    }

    /** The chain as it stands: names and settings of what is switched on. */
    get chain() {
      return this.cards.filter((card) => card.active).map(({ name, values }) => [name, values]);
    }

    render() {
      const before = this.data.logits[this.chosen];
      let now = before;
      this.choices.mark(this.chosen);
      if ([...this.list.children].some((child, place) => child !== this.cards[place].element) || !this.list.children.length)
        this.list.replaceChildren(...this.cards.map(({ element }) => element));
      this.cards.forEach((card, place) => {
        if (card.active) now = SamplerExplorer.apply(now, [[card.name, card.values]]);
        card.element.classList.toggle("se-on", card.active);
        card.body.hidden = !card.active;
        card.box.checked = card.active;
        card.state.textContent = card.active ? `${kept(now).length} kept` : "";
        card.up.hidden = card.down.hidden = !card.active;
        card.up.setAttribute("aria-disabled", String(place === 0));
        card.down.setAttribute("aria-disabled", String(place === this.cards.length - 1));
        for (const [setting, part] of card.sliders) part.mark(card.values[setting]);
      });
      this.show(before, now);
    }

    show(before, now) {
      const { shown } = this.data;
      const tokens = this.data.tokens[this.chosen];
      const [model, drawn] = [probabilities(before), probabilities(now)];
      const scale = Math.max(...model, ...drawn);
      const percent = (share) => `${(100 * share).toFixed(share < 0.0995 ? 1 : 0)} %`;
      const row = (name, first, second, gone) => {
        const bars = make("span", { className: "se-pair" });
        for (const [share, kind] of [
          [first, "se-model"],
          [second, "se-drawn"],
        ]) {
          const bar = make("span", { className: kind });
          bar.style.width = `${(100 * share) / scale}%`;
          bars.append(bar);
        }
        return [
          make("span", { className: gone ? "se-token se-gone" : "se-token", "data-tip": name }, name),
          bars,
          make("span", { className: "se-share" }, gone ? "–" : percent(second)),
        ];
      };
      const rows = tokens.slice(0, shown).flatMap((token, place) => row(token, model[place], drawn[place], now[place] === -Infinity));
      if (tokens.length > shown) {
        const rest = [sum(model.slice(shown)), sum(drawn.slice(shown))];
        rows.push(...row(`${tokens.length - shown} others`, ...rest, !kept(now.slice(shown)).length));
      }
      this.bars.replaceChildren(...rows);
      const count = kept(now).length;
      const bits = entropy(now) / Math.LN2;
      const mass = sum(model.filter((_, place) => now[place] > -Infinity));
      this.note.textContent = "thin: the model's probabilities; thick: those that are drawn from";
      const names = this.cards.filter((card) => card.active).map(({ title }) => title);
      this.say(
        `${names.join(", then ") || "No sampler"}: ${count} of ${tokens.length} tokens kept, with ${percent(mass)} of the model's mass; ` +
          `${bits.toFixed(2)} bits of choice.`,
      );
    }
  }

  define("sampler-explorer", SamplerExplorer);
})();
