// The four tools: their names, help and files to save.

/** @typedef {"colorize" | "cut" | "depth" | "refocus"} ToolName */
/** @typedef {{ title: string, help: string, saves: [string, string][] }} ToolText */

/** @type {ToolName[]} */
export const TOOLS = ["colorize", "cut", "depth", "refocus"];

/** @type {Record<ToolName, ToolText>} */
export const TEXTS = {
  colorize: {
    title: "Colorize",
    help: "Paint a few strokes. Colours spread as far as brightness and texture stay the same.",
    saves: [["picture", "Save picture"], ["strokes", "Strokes"]],
  },
  cut: {
    title: "Cut out",
    help: "Scribble on the object, then on what does not belong to it. X changes between the two.",
    saves: [["cutout", "Save cut-out"], ["matte", "Matte"], ["mask", "Mask"], ["strokes", "Scribbles"]],
  },
  depth: {
    title: "Depth",
    help: "Load a depth map, see it refined, and paint corrections. Red is near, blue is far.",
    saves: [["map", "Save depth map"], ["float", "As PFM"], ["strokes", "Corrections"]],
  },
  refocus: {
    title: "Refocus",
    help: "Click what should be sharp. The depth map is that of the tool before.",
    saves: [["picture", "Save picture"]],
  },
};

export const MARKS = { this: "#27c24c", other: "#f03e3e" };
export const FIXES = { wrong: "#ff0000", flat: "#0000ff" };

/** Colours for photographs that have none: skin, hair, wood, leaves, sky, stone, cloth. */
const NATURAL = [
  "#e8b796", "#c98a66", "#7a4a32", "#3d2a20", "#c8553d", "#e4a11b", "#f2d14e", "#6a8d3a",
  "#35602e", "#7fb2d8", "#2f6fae", "#1f3a63", "#8d6bb0", "#b79a72", "#9aa0a6", "#f3efe6",
];

/**
 * Frequent and different colours of a photograph, or natural ones for a gray photograph.
 * @param {Uint8ClampedArray} pixels
 * @returns {string[]}
 */
export function swatches(pixels) {
  /** @type {Map<number, number[]>} */
  const bins = new Map();
  const step = 4 * Math.max(1, Math.floor(pixels.length / 4 / 40000));
  let colored = 0, count = 0;
  for (let i = 0; i < pixels.length; i += step) {
    const [r, g, b] = [pixels[i], pixels[i + 1], pixels[i + 2]];
    count++;
    if (Math.max(r, g, b) - Math.min(r, g, b) > 24) colored++;
    const key = ((r >> 5) << 6) | ((g >> 5) << 3) | (b >> 5);
    const bin = bins.get(key) ?? [0, 0, 0, 0];
    bin[0] += r; bin[1] += g; bin[2] += b; bin[3]++;
    bins.set(key, bin);
  }
  if (colored < 0.02 * count) return NATURAL;
  /** @type {number[][]} */
  const chosen = [];
  const means = [...bins.values()].map((bin) => [bin[0] / bin[3], bin[1] / bin[3], bin[2] / bin[3], bin[3]]);
  while (chosen.length < 16 && means.length) {
    let best = 0, score = -1;
    means.forEach((color, i) => {
      const apart = Math.min(90, ...chosen.map((c) => Math.hypot(c[0] - color[0], c[1] - color[1], c[2] - color[2])));
      const value = Math.sqrt(color[3]) * apart * apart;
      if (value > score) [best, score] = [i, value];
    });
    chosen.push(means[best]);
    means.splice(best, 1);
  }
  return chosen.map((color) => hexOf(color[0], color[1], color[2]));
}

/**
 * @param {number} r
 * @param {number} g
 * @param {number} b
 */
export function hexOf(r, g, b) {
  return "#" + [r, g, b].map((value) => Math.round(value).toString(16).padStart(2, "0")).join("");
}
