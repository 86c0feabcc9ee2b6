// Painting: strokes on the layer of the tool, or the point in focus.

import { pixelOf } from "./layer.js";
import { context } from "./pixels.js";

/** @typedef {import("./studio.js").Studio} Studio */
/** @typedef {import("./view.js").View} View */
/** @typedef {{ size: number, erases: boolean }} Brush */
/**
 * @typedef {object} Hand
 * @property {() => string} color of the stroke, as #rrggbb
 * @property {(pixel: Uint8ClampedArray) => void} pick
 * @property {(clientX: number, clientY: number, visible: boolean) => void} hover
 */

export class Painter {
  /**
   * @param {Studio} studio
   * @param {View} view
   * @param {Brush} brush
   * @param {Hand} hand
   */
  constructor(studio, view, brush, hand) {
    this.studio = studio;
    this.view = view;
    this.brush = brush;
    this.hand = hand;
    this.hover = hand.hover;
    /** @type {{ x: number, y: number } | null} The end of the stroke that is being painted. */
    this.last = null;
    this.erases = false;
    /** @type {import("./document.js").Options | null} Options before the focus was dragged. */
    this.before = null;
  }

  ready() {
    return this.studio.original !== null;
  }

  /**
   * @param {number} x
   * @param {number} y
   * @param {number} pressure
   * @param {boolean} erase
   */
  begin(x, y, pressure, erase) {
    if (this.studio.tool === "refocus") {
      this.before = { ...this.studio.options };
    } else {
      this.erases = erase || this.brush.erases;
      this.last = { x, y };
    }
    this.move(x, y, pressure);
  }

  /**
   * @param {number} x
   * @param {number} y
   * @param {number} pressure
   */
  move(x, y, pressure) {
    const layer = this.studio.layer;
    if (this.before) this.studio.previewOptions({ x, y });
    if (!layer || !this.last) return;
    const size = Math.max(1, this.brush.size * (0.25 + 0.75 * pressure));
    const value = this.erases ? 0 : pixelOf(this.hand.color());
    const box = layer.line(this.last.x, this.last.y, x, y, size, value);
    this.last = { x, y };
    if (box) this.view.redrawStrokes(box);
    this.studio.changed();
  }

  end() {
    if (this.before) {
      const { x, y } = this.studio.options;
      this.studio.setOptions({ x, y }, this.before);
      this.before = null;
    }
    if (this.last) this.studio.endStroke();
    this.last = null;
  }

  cancel() {
    if (this.before) this.studio.previewOptions(this.before);
    this.studio.layer?.cancelStroke();
    this.last = null;
    this.before = null;
    this.view.redrawStrokes();
    this.studio.request();
  }

  /**
   * @param {number} x
   * @param {number} y
   */
  pick(x, y) {
    const { picture } = this.studio.newest;
    const source = picture?.factor === 1 ? picture.canvas : this.studio.original;
    const inside = x >= 0 && y >= 0 && x < this.studio.width && y < this.studio.height;
    if (source && inside) this.hand.pick(context(source).getImageData(Math.floor(x), Math.floor(y), 1, 1).data);
  }
}
