// The last minute of one figure, as a line.

import {svg} from "./dom.js";

const POINTS = 60;
const WIDTH = 120;
const HEIGHT = 28;

export class Sparkline {
  #values = [];
  #line = svg("path", {class: "spark-line"});
  #area = svg("path", {class: "spark-area"});
  element = svg("svg", {viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", class: "spark", "aria-hidden": "true"});

  constructor() {
    this.element.append(this.#area, this.#line);
  }

  add(value) {
    this.#values.push(value);
    if (this.#values.length > POINTS) this.#values.shift();
    if (this.#values.length < 2) return;
    const highest = Math.max(...this.#values);
    const lowest = Math.min(...this.#values);
    // A figure that hardly moves is drawn as one that hardly moves.
    const span = Math.max(highest - lowest, Math.abs(highest) * 0.1, 1e-9);
    const first = POINTS - this.#values.length;
    const points = this.#values.map((each, index) => {
      const x = ((first + index) / (POINTS - 1)) * WIDTH;
      const y = HEIGHT - 3 - ((each - lowest) / span) * (HEIGHT - 6);
      return `${x.toFixed(1)} ${y.toFixed(1)}`;
    });
    const left = ((first / (POINTS - 1)) * WIDTH).toFixed(1);
    this.#line.setAttribute("d", `M${points.join("L")}`);
    this.#area.setAttribute("d", `M${points.join("L")}L${WIDTH} ${HEIGHT}L${left} ${HEIGHT}Z`);
  }
}
