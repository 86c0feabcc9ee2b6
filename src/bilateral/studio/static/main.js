// The page: connects buttons, keys and pointers with the document.

import { all, get, press } from "./dom.js";
import { Files } from "./files.js";
import { setUpKeys } from "./keys.js";
import { Painter } from "./painter.js";
import { context } from "./pixels.js";
import { Pointers } from "./pointers.js";
import { Studio } from "./studio.js";
import { FIXES, hexOf, MARKS, swatches, TEXTS, TOOLS } from "./tools.js";
import { View } from "./view.js";

/** @typedef {import("./tools.js").ToolName} ToolName */

const stage = get("stage"), cursor = get("cursor");
const colorInput = /** @type {HTMLInputElement} */ (get("color"));
const sizeInput = /** @type {HTMLInputElement} */ (get("size"));
const apertureInput = /** @type {HTMLInputElement} */ (get("aperture"));
const nearnessInput = /** @type {HTMLInputElement} */ (get("nearness"));
const useMask = /** @type {HTMLInputElement} */ (get("use-mask"));
const brush = { size: 12, erases: false, mark: /** @type {"this" | "other"} */ ("this"), fix: "value" };
/** @type {number[]} */
let palette = [];
let greeted = false;
let hintTimer = 0;
/** Whether something was painted or changed since the last project was saved. */
let unsaved = false;
/** @type {{ x: number, y: number } | null} The keyboard's place in the picture. */
let keyPlace = null;

// ---------------------------------------------------------------- document and view

const studio = new Studio({
  hello(header) {
    palette = header.palette;
    showNearness();
    if (greeted) return;
    greeted = true;
    for (const { name, title } of header.examples) {
      for (const list of [get("example-list"), get("cards")]) {
        const button = document.createElement("button");
        button.type = "button";
        button.textContent = title;
        button.addEventListener("click", () => {
          get("examples").removeAttribute("open");
          studio.open({ kind: "example", name });
        });
        list.append(button);
      }
    }
    if (header.photo) files.openFromCommandLine(header.photo);
  },
  opened() {
    get("welcome").hidden = true;
    get("file-name").textContent = `${studio.name} · ${studio.width} × ${studio.height}`;
    document.title = `${studio.name} · studio`;
    const { original, width, height } = studio;
    if (original) showSwatches(swatches(context(original).getImageData(0, 0, width, height).data));
    keyPlace = null;
    view.setSize(studio.width, studio.height);
    showTool();
  },
  picture: () => view.redraw(),
  hint: showHint,
  file: (name, bytes) => files.download(name, bytes),
  link(up) {
    const link = get("link");
    link.textContent = up ? "connected" : studio?.link.rests ? "resting" : "reconnecting…";
    link.classList.toggle("up", up);
  },
  history() {
    unsaved = studio.history.done.length > 0;
    /** @type {HTMLButtonElement} */ (get("undo")).disabled = !studio.history.done.length;
    /** @type {HTMLButtonElement} */ (get("redo")).disabled = !studio.history.undone.length;
  },
  options: showOptions,
  timing(milliseconds) {
    get("timing").textContent = `${Math.round(milliseconds)} ms`;
  },
});

const view = new View(
  stage,
  /** @type {HTMLCanvasElement} */ (get("base")),
  /** @type {HTMLCanvasElement} */ (get("strokes")),
  () => {
    const { picture, isPreview, full } = studio.newest;
    const tints = studio.tool === "colorize" && isPreview, cuts = studio.tool === "cut" && isPreview;
    return {
      before: studio.original,
      after: tints ? (full?.canvas ?? studio.original) : cuts ? studio.original : (picture?.canvas ?? null),
      tint: tints && picture ? picture.canvas : null,
      opacity: cuts && picture ? picture.canvas : null,
      transparent: studio.tool === "cut",
      layer: studio.layer,
    };
  },
);
view.onMove = () => {
  get("zoom-value").textContent = `${Math.round(100 * view.zoom)} %`;
  showFocus();
  showCursor();
};

const files = new Files(studio, { showHint, selectTool });

// ---------------------------------------------------------------- painting

/** @type {{ x: number, y: number } | null} The pointer's place in the window. */
let pointer = null;
/** @type {import("./document.js").Options | null} Options before a drag of a slider. */
let optionsBefore = null;
const painter = new Painter(studio, view, brush, {
  color: strokeColor,
  pick,
  hover(x, y, visible) {
    pointer = visible ? { x, y } : null;
    showCursor();
  },
});
const pointers = new Pointers(stage, view, painter);

/**
 * Take the colour, or the depth, of a pixel of the picture.
 * @param {Uint8ClampedArray} pixel
 */
function pick(pixel) {
  if (studio.tool === "colorize") {
    colorInput.value = hexOf(pixel[0], pixel[1], pixel[2]);
  } else if (studio.tool === "depth") {
    let best = 0, least = Infinity;
    for (let i = 0; i < 256; i++) {
      const apart = Math.hypot(palette[3 * i] - pixel[0], palette[3 * i + 1] - pixel[1], palette[3 * i + 2] - pixel[2]);
      if (apart < least) [best, least] = [i, apart];
    }
    nearnessInput.value = String(best);
    showNearness();
  }
  setPicks(false);
}

function strokeColor() {
  if (studio.tool === "cut") return MARKS[brush.mark];
  if (studio.tool === "depth") {
    if (brush.fix === "wrong") return FIXES.wrong;
    if (brush.fix === "flat") return FIXES.flat;
    const i = 3 * Number(nearnessInput.value);
    return hexOf(palette[i], palette[i + 1], palette[i + 2]);
  }
  return colorInput.value;
}

function showCursor() {
  const paints = studio.original !== null && studio.tool !== "refocus" && !pointers?.space && !pointers?.picks;
  stage.classList.toggle("paints", paints);
  stage.classList.toggle("aims", studio.original !== null && !paints && !pointers?.space);
  const box = stage.getBoundingClientRect();
  const place = pointer
    ? { x: pointer.x - box.left, y: pointer.y - box.top }
    : keyPlace && { x: keyPlace.x * view.zoom + view.x, y: keyPlace.y * view.zoom + view.y };
  cursor.hidden = !paints || !place;
  if (!place) return;
  // Brushes below two pixels paint the pixel under the pointer: the ring is around that pixel.
  const pixel = brush.size < 2;
  if (pixel) {
    place.x = (Math.floor((place.x - view.x) / view.zoom) + 0.5) * view.zoom + view.x;
    place.y = (Math.floor((place.y - view.y) / view.zoom) + 0.5) * view.zoom + view.y;
  }
  const size = Math.max((pixel ? 1 : brush.size) * view.zoom, 2);
  cursor.classList.toggle("tiny", size < 8);
  cursor.style.width = cursor.style.height = `${size}px`;
  cursor.style.transform = `translate(${place.x - size / 2}px, ${place.y - size / 2}px)`;
}

/** @param {number} size */
function setSize(size) {
  brush.size = Math.max(1, Math.min(400, size < 8 ? Math.round(size * 2) / 2 : Math.round(size)));
  sizeInput.value = String((100 * Math.log(brush.size)) / Math.log(400));
  get("size-value").textContent = `${brush.size} px`;
  showCursor();
}

/** @param {boolean} erases */
function setErases(erases) {
  brush.erases = erases;
  press(get("brush"), !erases);
  press(get("eraser"), erases);
}

/** @param {boolean} picks */
function setPicks(picks) {
  pointers.picks = picks;
  press(get("pick"), picks);
  showCursor();
}

// ---------------------------------------------------------------- panels

/** @param {ToolName} tool */
function selectTool(tool) {
  painter.end(); // a stroke belongs to the tool that began it
  studio.tool = tool;
  showTool();
  studio.request();
}

function showTool() {
  const text = TEXTS[studio.tool];
  for (const button of all("[data-tool]")) press(button, button.dataset.tool === studio.tool);
  for (const part of all("[data-for]")) part.hidden = !(part.dataset.for ?? "").split(" ").includes(studio.tool);
  get("panel-title").textContent = text.title;
  get("panel-help").textContent = text.help;
  /** @type {[string, () => void][]} */
  const saves = text.saves.map(([what, label]) => [label, () => studio.save(what)]);
  get("saves").replaceChildren(
    ...[...saves, /** @type {[string, () => void]} */ (["Project", saveProject])].map(([label, save]) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = label;
      button.addEventListener("click", save);
      return button;
    }),
  );
  showHint("", false);
  showOptions();
  view.redraw();
  showCursor();
}

async function saveProject() {
  await files.downloadProject();
  unsaved = false;
}
addEventListener("beforeunload", (event) => {
  if (unsaved) event.preventDefault();
});

function showOptions() {
  const { look, values, refine, mask, aperture } = studio.options;
  useMask.checked = mask;
  useMask.disabled = !studio.maskFile;
  for (const button of all("[data-look]")) press(button, button.dataset.look === look);
  /** @type {HTMLSelectElement} */ (get("values")).value = values;
  /** @type {HTMLInputElement} */ (get("refine")).checked = refine;
  apertureInput.value = String(Math.round(100 * aperture));
  showFocus();
}

function showFocus() {
  const mark = get("focus-mark");
  mark.hidden = studio.tool !== "refocus" || !studio.original || !studio.hasDepth;
  const { x, y } = studio.options;
  mark.style.transform = `translate(${x * view.zoom + view.x}px, ${y * view.zoom + view.y}px)`;
}

function showNearness() {
  const i = 3 * Number(nearnessInput.value);
  if (palette.length) get("nearness-color").style.backgroundColor = hexOf(palette[i], palette[i + 1], palette[i + 2]);
}

/** @param {string[]} colors */
function showSwatches(colors) {
  get("swatches").replaceChildren(
    ...colors.map((color) => {
      const button = document.createElement("button");
      button.type = "button";
      button.style.backgroundColor = color;
      button.setAttribute("aria-label", `Colour ${color}`);
      button.addEventListener("click", () => {
        colorInput.value = color;
        setErases(false);
      });
      return button;
    }),
  );
}

/**
 * @param {string} text
 * @param {boolean} bad
 */
function showHint(text, bad) {
  const hint = get("hint");
  clearTimeout(hintTimer);
  hint.textContent = text;
  hint.classList.toggle("bad", bad);
  if (bad) hintTimer = window.setTimeout(() => showHint("", false), 12000);
}

// ---------------------------------------------------------------- buttons and keys

for (const button of all("[data-tool]")) button.addEventListener("click", () => selectTool(/** @type {ToolName} */ (button.dataset.tool)));
/** @param {"this" | "other"} mark */
function setMark(mark) {
  brush.mark = mark;
  for (const button of all("[data-mark]")) press(button, button.dataset.mark === mark);
  setErases(false);
}
for (const button of all("[data-mark]")) button.addEventListener("click", () => setMark(button.dataset.mark === "this" ? "this" : "other"));
for (const button of all("[data-fix]")) {
  button.addEventListener("click", () => {
    brush.fix = button.dataset.fix ?? "value";
    for (const other of all("[data-fix]")) press(other, other === button);
    setErases(false);
  });
}
for (const button of all("[data-look]")) button.addEventListener("click", () => studio.setOptions({ look: button.dataset.look }));
get("values").addEventListener("change", (event) => studio.setOptions({ values: /** @type {HTMLSelectElement} */ (event.target).value }));
get("refine").addEventListener("change", (event) => studio.setOptions({ refine: /** @type {HTMLInputElement} */ (event.target).checked }));
useMask.addEventListener("change", () => studio.setOptions({ mask: useMask.checked }));
apertureInput.addEventListener("input", () => {
  optionsBefore ??= { ...studio.options };
  studio.previewOptions({ aperture: Number(apertureInput.value) / 100 });
});
apertureInput.addEventListener("change", () => {
  studio.setOptions({ aperture: Number(apertureInput.value) / 100 }, optionsBefore ?? undefined);
  optionsBefore = null;
});
nearnessInput.addEventListener("input", showNearness);
sizeInput.addEventListener("input", () => setSize(Math.pow(400, Number(sizeInput.value) / 100)));
get("brush").addEventListener("click", () => setErases(false));
get("eraser").addEventListener("click", () => setErases(true));
get("pick").addEventListener("click", () => setPicks(!pointers.picks));
get("clear").addEventListener("click", () => {
  if (!studio.layer) return;
  studio.layer.clear();
  studio.endStroke();
  view.redrawStrokes();
});
get("undo").addEventListener("click", () => studio.history.undo());
get("redo").addEventListener("click", () => studio.history.redo());
get("zoom-in").addEventListener("click", () => view.zoomTo(view.zoom * 1.5));
get("zoom-out").addEventListener("click", () => view.zoomTo(view.zoom / 1.5));
get("zoom-fit").addEventListener("click", () => view.fit());
get("theme").addEventListener("click", () => {
  const root = document.documentElement;
  const isLight = root.dataset.theme ? root.dataset.theme === "light" : matchMedia("(prefers-color-scheme: light)").matches;
  root.dataset.theme = isLight ? "dark" : "light";
  localStorage.setItem("theme", root.dataset.theme);
  view.redraw();
});
const showStrokes = /** @type {HTMLInputElement} */ (get("show-strokes"));
showStrokes.addEventListener("change", () => {
  view.showsStrokes = showStrokes.checked;
  view.redrawStrokes();
});
const showCompare = /** @type {HTMLInputElement} */ (get("show-compare"));
showCompare.addEventListener("change", () => {
  view.compares = showCompare.checked;
  get("compare").hidden = !showCompare.checked;
  view.redrawBase();
});
const handle = get("compare-handle");
/** @param {number} split */
function setSplit(split) {
  view.split = Math.max(0, Math.min(1, split));
  get("compare").style.left = `${100 * view.split}%`;
  handle.setAttribute("aria-valuenow", String(Math.round(100 * view.split)));
  view.redrawBase();
}
handle.addEventListener("pointerdown", (event) => handle.setPointerCapture(event.pointerId));
handle.addEventListener("pointermove", (event) => {
  if (!handle.hasPointerCapture(event.pointerId)) return;
  const box = stage.getBoundingClientRect();
  setSplit((event.clientX - box.left) / box.width);
});
handle.addEventListener("keydown", (event) => {
  if (event.key === "ArrowLeft") setSplit(view.split - 0.05);
  else if (event.key === "ArrowRight") setSplit(view.split + 0.05);
  else return;
  event.preventDefault();
  event.stopPropagation();
});

/** @param {HTMLInputElement} box */
function toggle(box) {
  box.checked = !box.checked;
  box.dispatchEvent(new Event("change"));
}

/** @type {Record<string, () => void>} */
const KEYS = {
  "[": () => setSize(brush.size > 8 ? brush.size / 1.2 : brush.size - 0.5),
  "]": () => setSize(brush.size >= 8 ? brush.size * 1.2 : brush.size + 0.5),
  b: () => setErases(false),
  e: () => setErases(true),
  i: () => setPicks(!pointers.picks),
  x: () => setMark(brush.mark === "this" ? "other" : "this"),
  s: () => toggle(showStrokes),
  c: () => toggle(showCompare),
  0: () => view.fit(),
  "+": () => view.zoomTo(view.zoom * 1.25),
  "=": () => view.zoomTo(view.zoom * 1.25),
  "-": () => view.zoomTo(view.zoom / 1.25),
  1: () => selectTool(TOOLS[0]),
  2: () => selectTool(TOOLS[1]),
  3: () => selectTool(TOOLS[2]),
  4: () => selectTool(TOOLS[3]),
};

/**
 * Move the place of the keyboard by arrows; paint there by Enter.
 * @param {KeyboardEvent} event
 * @returns {boolean}
 */
function moveByKey(event) {
  /** @type {Record<string, [number, number]>} */
  const steps = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
  const step = steps[event.key], far = (event.shiftKey ? 10 : 1) * Math.max(1, brush.size / 2);
  if (!step && event.key !== "Enter") return false;
  keyPlace ??= { x: studio.width / 2, y: studio.height / 2 };
  pointer = null;
  if (step) {
    keyPlace.x = Math.max(0, Math.min(studio.width - 1, keyPlace.x + step[0] * far));
    keyPlace.y = Math.max(0, Math.min(studio.height - 1, keyPlace.y + step[1] * far));
  } else {
    painter.begin(keyPlace.x, keyPlace.y, 1, false);
    painter.end();
  }
  showCursor();
  return true;
}

setUpKeys(studio, stage, pointers, KEYS, moveByKey, showCursor);

const theme = localStorage.getItem("theme");
if (theme) document.documentElement.dataset.theme = theme;
setSize(12);
showTool();
// For tests and benchmarks, which read the document of the page.
Object.assign(window, { studio, view, brush, setSize });
