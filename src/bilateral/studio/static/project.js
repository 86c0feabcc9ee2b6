// Project files: the photograph, the depth map, all strokes and options in one file.

import { Layer } from "./layer.js";
import { context } from "./studio.js";
import { TOOLS } from "./tools.js";

/** @typedef {import("./studio.js").Studio} Studio */

const MAGIC = "bilateral studio 1\n";

/**
 * @param {Studio} studio
 * @returns {Promise<Blob>}
 */
export async function saveProject(studio) {
  /** @type {{ key: string, bytes: Uint8Array<ArrayBuffer> }[]} */
  const parts = [];
  if (studio.photo?.kind === "file") parts.push({ key: "photo", bytes: studio.photo.bytes });
  if (studio.depthFile) parts.push({ key: "depth", bytes: studio.depthFile.bytes });
  if (studio.maskFile) parts.push({ key: "mask", bytes: studio.maskFile.bytes });
  for (const tool of TOOLS) {
    const layer = studio.layers[tool];
    if (!layer || layer.empty) continue;
    const blob = await layer.canvas.convertToBlob({ type: "image/png" });
    parts.push({ key: tool, bytes: new Uint8Array(await blob.arrayBuffer()) });
  }
  const header = {
    tool: studio.tool,
    options: studio.options,
    photo: { ...studio.photo, bytes: undefined },
    mask: studio.maskFile ? studio.maskFile.name : null,
    depth: studio.depthFile ? { ...studio.depthFile, bytes: undefined } : null,
    parts: parts.map(({ key, bytes }) => ({ key, size: bytes.length })),
  };
  return new Blob([MAGIC, JSON.stringify(header), "\n", ...parts.map((part) => part.bytes)]);
}

/**
 * @param {Uint8Array} bytes
 * @returns {boolean}
 */
export function isProject(bytes) {
  return new TextDecoder().decode(bytes.subarray(0, MAGIC.length)) === MAGIC;
}

/**
 * @param {Studio} studio
 * @param {Uint8Array<ArrayBuffer>} bytes
 * @param {(tool: import("./tools.js").ToolName) => void} selectTool
 */
export function openProject(studio, bytes, selectTool) {
  const end = bytes.indexOf(10, MAGIC.length);
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(MAGIC.length, end)));
  /** @type {Record<string, Uint8Array<ArrayBuffer>>} */
  const parts = {};
  let at = end + 1;
  for (const { key, size } of header.parts) {
    parts[key] = bytes.slice(at, at + size);
    at += size;
  }
  const photo = header.photo.kind === "file" ? { ...header.photo, bytes: parts.photo } : header.photo;
  studio.open(photo, async () => {
    studio.options = { ...studio.options, ...header.options };
    if (header.depth) {
      studio.depthFile = { ...header.depth, bytes: parts.depth };
      studio.sendDepth();
    }
    if (header.mask) {
      studio.maskFile = { name: header.mask, bytes: parts.mask };
      studio.sendMask();
    }
    for (const tool of TOOLS) {
      if (!parts[tool]) continue;
      const layer = (studio.layers[tool] = new Layer(studio.width, studio.height));
      const picture = await createImageBitmap(new Blob([parts[tool]]), {
        colorSpaceConversion: "none",
        premultiplyAlpha: "none",
      });
      const scratch = context(new OffscreenCanvas(layer.width, layer.height));
      scratch.drawImage(picture, 0, 0);
      const data = scratch.getImageData(0, 0, layer.width, layer.height).data;
      const box = { x: 0, y: 0, width: layer.width, height: layer.height };
      layer.write(box, new Uint32Array(data.buffer));
    }
    studio.events.options();
    selectTool(header.tool);
  });
}
