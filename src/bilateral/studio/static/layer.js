// A layer of strokes: pixels with hard edges, so that a saved layer is exactly what was painted.

/** @typedef {{ x: number, y: number, width: number, height: number }} Box */
/** @typedef {{ index: number, before: Uint32Array, after: Uint32Array }} Tile */

const TILE = 64;

export class Layer {
  /**
   * @param {number} width
   * @param {number} height
   */
  constructor(width, height) {
    this.width = width;
    this.height = height;
    this.pixels = new Uint32Array(width * height);
    const bytes = new Uint8ClampedArray(this.pixels.buffer);
    this.image = new ImageData(bytes, width, height);
    this.canvas = new OffscreenCanvas(width, height);
    this.context = /** @type {OffscreenCanvasRenderingContext2D} */ (this.canvas.getContext("2d"));
    this.columns = Math.ceil(width / TILE);
    /** @type {Map<number, Uint32Array>} Tiles before the stroke that is being painted. */
    this.kept = new Map();
    /** @type {Box | null} What changed since the last `takeDirty`. */
    this.dirty = null;
  }

  /**
   * Paint a line with round ends; a size of 1 paints single pixels.
   * @param {number} x0
   * @param {number} y0
   * @param {number} x1
   * @param {number} y1
   * @param {number} size diameter in pixels
   * @param {number} value the pixel: R, G, B, A from low to high bytes; 0 erases
   * @returns {Box | null} what changed
   */
  line(x0, y0, x1, y1, size, value) {
    let radius = size / 2;
    if (size < 2) {
      x0 = Math.floor(x0) + 0.5; y0 = Math.floor(y0) + 0.5;
      x1 = Math.floor(x1) + 0.5; y1 = Math.floor(y1) + 0.5;
      radius = 0.5;
    }
    const left = Math.max(0, Math.floor(Math.min(x0, x1) - radius));
    const top = Math.max(0, Math.floor(Math.min(y0, y1) - radius));
    const right = Math.min(this.width, Math.ceil(Math.max(x0, x1) + radius));
    const bottom = Math.min(this.height, Math.ceil(Math.max(y0, y1) + radius));
    if (left >= right || top >= bottom) return null;
    const box = { x: left, y: top, width: right - left, height: bottom - top };
    this.keep(box);
    const dx = x1 - x0, dy = y1 - y0, length = dx * dx + dy * dy, limit = radius * radius + 1e-9;
    for (let y = top; y < bottom; y++) {
      const py = y + 0.5 - y0;
      for (let x = left; x < right; x++) {
        const px = x + 0.5 - x0;
        const t = length ? Math.min(1, Math.max(0, (px * dx + py * dy) / length)) : 0;
        const ex = px - t * dx, ey = py - t * dy;
        if (ex * ex + ey * ey <= limit) this.pixels[y * this.width + x] = value;
      }
    }
    this.changed(box);
    return box;
  }

  /** @param {Box} box */
  changed(box) {
    this.context.putImageData(this.image, 0, 0, box.x, box.y, box.width, box.height);
    this.dirty = this.dirty ? union(this.dirty, box) : box;
  }

  /** @param {Box} box */
  keep(box) {
    const lastRow = Math.floor((box.y + box.height - 1) / TILE);
    const lastColumn = Math.floor((box.x + box.width - 1) / TILE);
    for (let row = Math.floor(box.y / TILE); row <= lastRow; row++) {
      for (let column = Math.floor(box.x / TILE); column <= lastColumn; column++) {
        const index = row * this.columns + column;
        if (!this.kept.has(index)) this.kept.set(index, this.read(this.tileBox(index)));
      }
    }
  }

  /**
   * @param {number} index
   * @returns {Box}
   */
  tileBox(index) {
    const x = (index % this.columns) * TILE, y = Math.floor(index / this.columns) * TILE;
    return { x, y, width: Math.min(TILE, this.width - x), height: Math.min(TILE, this.height - y) };
  }

  /**
   * @param {Box} box
   * @returns {Uint32Array<ArrayBuffer>}
   */
  read(box) {
    const out = new Uint32Array(box.width * box.height);
    for (let row = 0; row < box.height; row++) {
      const start = (box.y + row) * this.width + box.x;
      out.set(this.pixels.subarray(start, start + box.width), row * box.width);
    }
    return out;
  }

  /**
   * @param {Box} box
   * @param {Uint32Array} values
   */
  write(box, values) {
    for (let row = 0; row < box.height; row++) {
      const part = values.subarray(row * box.width, (row + 1) * box.width);
      this.pixels.set(part, (box.y + row) * this.width + box.x);
    }
    this.changed(box);
  }

  /**
   * End a stroke; return its tiles before and after.
   * @returns {Tile[]}
   */
  endStroke() {
    const tiles = [];
    for (const [index, before] of this.kept) {
      const after = this.read(this.tileBox(index));
      if (before.some((value, i) => value !== after[i])) tiles.push({ index, before, after });
    }
    this.kept = new Map();
    return tiles;
  }

  /** Take back the stroke that is being painted. */
  cancelStroke() {
    for (const [index, before] of this.kept) this.write(this.tileBox(index), before);
    this.kept = new Map();
  }

  clear() {
    this.keep({ x: 0, y: 0, width: this.width, height: this.height });
    this.pixels.fill(0);
    this.changed({ x: 0, y: 0, width: this.width, height: this.height });
  }

  get empty() {
    return !this.pixels.some((value) => value !== 0);
  }

  /** @returns {Box | null} */
  takeDirty() {
    const box = this.dirty;
    this.dirty = null;
    return box;
  }
}

/**
 * @param {Box} a
 * @param {Box} b
 * @returns {Box}
 */
export function union(a, b) {
  const x = Math.min(a.x, b.x), y = Math.min(a.y, b.y);
  const right = Math.max(a.x + a.width, b.x + b.width);
  const bottom = Math.max(a.y + a.height, b.y + b.height);
  return { x, y, width: right - x, height: bottom - y };
}

/**
 * @param {string} hex as #rrggbb
 * @returns {number} an opaque pixel
 */
export function pixelOf(hex) {
  const n = parseInt(hex.slice(1), 16);
  return ((255 << 24) | ((n & 255) << 16) | (n & 0xff00) | (n >> 16)) >>> 0;
}
