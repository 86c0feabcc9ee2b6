// What is on screen: zoom, position, the picture and the strokes over it.
// Both canvases have the size of the window, so that painting costs the same for any photograph.

/** @typedef {import("./layer.js").Box} Box */
/** @typedef {import("./layer.js").Layer} Layer */
/** @typedef {OffscreenCanvas | HTMLCanvasElement | ImageBitmap} Source */
/**
 * @typedef {object} Scene
 * @property {Source | null} before the photograph
 * @property {Source | null} after the result
 * @property {Source | null} tint a preview whose colours are laid over `after`
 * @property {Source | null} opacity a preview whose opacity `after` gets
 * @property {boolean} transparent
 * @property {Layer | null} layer
 */

const LEAST_ZOOM = 0.02;
const MOST_ZOOM = 64;
/** A small photograph is enlarged by this at first. */
const MOST_FITTED = 16;

export class View {
  /**
   * @param {HTMLElement} stage
   * @param {HTMLCanvasElement} base
   * @param {HTMLCanvasElement} strokes
   * @param {() => Scene} scene
   */
  constructor(stage, base, strokes, scene) {
    this.stage = stage;
    this.base = base;
    this.strokes = strokes;
    this.scene = scene;
    this.baseContext = /** @type {CanvasRenderingContext2D} */ (base.getContext("2d", { alpha: false }));
    this.strokesContext = /** @type {CanvasRenderingContext2D} */ (strokes.getContext("2d"));
    this.zoom = 1;
    this.x = 0;
    this.y = 0;
    this.width = 0;
    this.height = 0;
    this.split = 0.5;
    this.compares = false;
    this.showsStrokes = true;
    this.wantsBase = false;
    this.wantsStrokes = false;
    /** @type {Box | null} */
    this.dirty = null;
    this.scheduled = false;
    this.fitted = true;
    this.drawnRatio = 0;
    /** @type {() => void} */
    this.onDraw = () => {};
    /** @type {() => void} */
    this.onMove = () => {};
    this.watchSize();
    this.resize();
  }

  /** Pixels of the device count: a window on another screen may change its pixel ratio only. */
  watchSize() {
    const observer = new ResizeObserver(() => this.resize());
    try {
      observer.observe(this.stage, { box: "device-pixel-content-box" });
    } catch {
      // This browser does not tell the pixels of the device.
      observer.observe(this.stage);
      addEventListener("resize", () => this.resize());
    }
  }

  get ratio() {
    return window.devicePixelRatio || 1;
  }

  resize() {
    const box = this.stage.getBoundingClientRect();
    this.drawnRatio = this.ratio;
    for (const canvas of [this.base, this.strokes]) {
      canvas.width = Math.max(1, Math.round(box.width * this.ratio));
      canvas.height = Math.max(1, Math.round(box.height * this.ratio));
    }
    if (this.fitted) this.fit();
    this.redraw();
  }

  /**
   * @param {number} width
   * @param {number} height
   */
  setSize(width, height) {
    this.width = width;
    this.height = height;
    this.fit();
  }

  fit() {
    const box = this.stage.getBoundingClientRect();
    if (!this.width || !box.width) return;
    const room = Math.min(24, box.width / 20);
    const zoom = Math.min((box.width - 2 * room) / this.width, (box.height - 2 * room) / this.height);
    this.zoom = Math.max(LEAST_ZOOM, Math.min(zoom, MOST_FITTED));
    this.x = (box.width - this.width * this.zoom) / 2;
    this.y = (box.height - this.height * this.zoom) / 2;
    this.fitted = true;
    this.moved();
  }

  /**
   * Zoom so that the point of the picture under a place of the stage stays there.
   * @param {number} zoom
   * @param {number} [stageX]
   * @param {number} [stageY]
   */
  zoomTo(zoom, stageX, stageY) {
    const box = this.stage.getBoundingClientRect();
    const cx = stageX ?? box.width / 2, cy = stageY ?? box.height / 2;
    const next = Math.max(LEAST_ZOOM, Math.min(MOST_ZOOM, zoom));
    this.x = cx - ((cx - this.x) / this.zoom) * next;
    this.y = cy - ((cy - this.y) / this.zoom) * next;
    this.zoom = next;
    this.fitted = false;
    this.moved();
  }

  /**
   * @param {number} dx
   * @param {number} dy
   */
  pan(dx, dy) {
    this.x += dx;
    this.y += dy;
    this.fitted = false;
    this.moved();
  }

  moved() {
    this.redraw();
    this.onMove();
  }

  /**
   * The place in the picture, in pixels, of a place in the window.
   * @param {number} clientX
   * @param {number} clientY
   */
  toPicture(clientX, clientY) {
    const box = this.stage.getBoundingClientRect();
    return { x: (clientX - box.left - this.x) / this.zoom, y: (clientY - box.top - this.y) / this.zoom };
  }

  redraw() {
    this.wantsBase = true;
    this.redrawStrokes();
  }

  redrawBase() {
    this.wantsBase = true;
    this.schedule();
  }

  /** @param {Box} [box] only this part of the layer changed */
  redrawStrokes(box) {
    if (!box) this.wantsStrokes = true;
    else if (this.dirty) {
      const x = Math.min(this.dirty.x, box.x), y = Math.min(this.dirty.y, box.y);
      this.dirty = {
        x, y,
        width: Math.max(this.dirty.x + this.dirty.width, box.x + box.width) - x,
        height: Math.max(this.dirty.y + this.dirty.height, box.y + box.height) - y,
      };
    } else this.dirty = box;
    this.schedule();
  }

  schedule() {
    if (this.scheduled) return;
    this.scheduled = true;
    requestAnimationFrame(() => {
      this.scheduled = false;
      if (this.ratio !== this.drawnRatio) this.resize();
      if (this.wantsBase) this.drawBase();
      if (this.wantsStrokes || this.dirty) this.drawStrokes();
      this.onDraw();
    });
  }

  /** @param {CanvasRenderingContext2D} context */
  prepare(context) {
    const scale = this.zoom * this.ratio;
    context.setTransform(scale, 0, 0, scale, this.x * this.ratio, this.y * this.ratio);
    context.imageSmoothingEnabled = scale < 2;
    context.imageSmoothingQuality = scale < 0.5 ? "medium" : "low";
  }

  drawBase() {
    this.wantsBase = false;
    const context = this.baseContext, scene = this.scene();
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.globalCompositeOperation = "source-over";
    context.fillStyle = getComputedStyle(this.stage).backgroundColor;
    context.fillRect(0, 0, this.base.width, this.base.height);
    if (!scene.before || !this.width) return;
    this.prepare(context);
    if (scene.transparent) this.drawChecks(context);
    const after = scene.after ?? scene.before;
    if (scene.opacity) this.drawCut(context, after, scene.opacity);
    else context.drawImage(after, 0, 0, this.width, this.height);
    if (scene.tint) {
      // Only hue and saturation come from the preview: the photograph stays sharp.
      context.globalCompositeOperation = "color";
      context.imageSmoothingEnabled = true;
      context.drawImage(scene.tint, 0, 0, this.width, this.height);
      context.globalCompositeOperation = "source-over";
    }
    if (this.compares) {
      const edge = (this.split * this.base.width / this.ratio - this.x) / this.zoom;
      context.save();
      context.beginPath();
      context.rect(0, 0, Math.max(0, Math.min(edge, this.width)), this.height);
      context.clip();
      context.imageSmoothingEnabled = this.zoom * this.ratio < 2;
      context.drawImage(scene.before, 0, 0, this.width, this.height);
      context.restore();
    }
  }

  /**
   * Draw a picture with the opacity of another one: the picture stays sharp.
   * @param {CanvasRenderingContext2D} context
   * @param {Source} picture
   * @param {Source} opacity
   */
  drawCut(context, picture, opacity) {
    const scratch = document.createElement("canvas");
    scratch.width = this.base.width;
    scratch.height = this.base.height;
    const cut = /** @type {CanvasRenderingContext2D} */ (scratch.getContext("2d"));
    this.prepare(cut);
    cut.drawImage(picture, 0, 0, this.width, this.height);
    cut.globalCompositeOperation = "destination-in";
    cut.imageSmoothingEnabled = true;
    cut.drawImage(opacity, 0, 0, this.width, this.height);
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.drawImage(scratch, 0, 0);
    this.prepare(context);
  }

  /** @param {CanvasRenderingContext2D} context */
  drawChecks(context) {
    const tile = new OffscreenCanvas(16, 16);
    const checks = /** @type {OffscreenCanvasRenderingContext2D} */ (tile.getContext("2d"));
    checks.fillStyle = "#fff";
    checks.fillRect(0, 0, 16, 16);
    checks.fillStyle = "#cfd2d8";
    checks.fillRect(0, 0, 8, 8);
    checks.fillRect(8, 8, 8, 8);
    const pattern = /** @type {CanvasPattern} */ (context.createPattern(tile, "repeat"));
    pattern.setTransform(new DOMMatrix().scale(1 / (this.zoom * this.ratio)));
    context.fillStyle = pattern;
    context.fillRect(0, 0, this.width, this.height);
  }

  drawStrokes() {
    const context = this.strokesContext, layer = this.scene().layer;
    const whole = this.wantsStrokes || !layer || !this.showsStrokes;
    const dirty = this.dirty;
    this.wantsStrokes = false;
    this.dirty = null;
    if (whole) {
      context.setTransform(1, 0, 0, 1, 0, 0);
      context.clearRect(0, 0, this.strokes.width, this.strokes.height);
    }
    if (!layer || !this.showsStrokes) return;
    this.prepare(context);
    if (whole) {
      context.drawImage(layer.canvas, 0, 0);
    } else if (dirty) {
      const x = Math.max(0, dirty.x - 1), y = Math.max(0, dirty.y - 1);
      const width = Math.min(layer.width, dirty.x + dirty.width + 1) - x;
      const height = Math.min(layer.height, dirty.y + dirty.height + 1) - y;
      context.save();
      context.beginPath();
      context.rect(x, y, width, height);
      context.clip();
      context.clearRect(x, y, width, height);
      context.drawImage(layer.canvas, x, y, width, height, x, y, width, height);
      context.restore();
    }
  }
}
