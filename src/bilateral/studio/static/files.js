// Files: open, drop, paste, and save.

import { get } from "./dom.js";
import { isProject, openProject, saveProject } from "./project.js";

/** @typedef {import("./studio.js").Studio} Studio */
/** @typedef {import("./tools.js").ToolName} ToolName */
/**
 * @typedef {object} Screen
 * @property {(text: string, bad: boolean) => void} showHint
 * @property {(tool: ToolName) => void} selectTool
 */

export class Files {
  /**
   * @param {Studio} studio
   * @param {Screen} screen
   */
  constructor(studio, screen) {
    this.studio = studio;
    this.screen = screen;
    this.listen();
  }

  /**
   * @param {File} file
   * @param {"open" | "depth" | "stereo" | "mask"} [use]
   */
  async open(file, use = "open") {
    if (use !== "open" && !this.studio.original) return this.screen.showHint("Open a photograph first.", false);
    const bytes = new Uint8Array(await file.arrayBuffer());
    if (use === "mask") {
      this.studio.loadMask({ name: file.name, bytes });
    } else if (use === "open" && isProject(bytes)) {
      if (!openProject(this.studio, bytes, this.screen.selectTool)) {
        this.screen.showHint(`${file.name} is a damaged project.`, true);
      }
    } else if (use === "open") {
      this.studio.open({ kind: "file", name: file.name, bytes });
    } else {
      const disparities = Math.min(256, Math.ceil(this.studio.width / 6));
      this.studio.loadDepth({ kind: use, name: file.name, bytes, disparities });
    }
  }

  /** @param {string} name */
  async openFromCommandLine(name) {
    const answer = await fetch("photo");
    const bytes = new Uint8Array(await answer.arrayBuffer());
    this.studio.open({ kind: "file", name, bytes });
  }

  /**
   * @param {string} name
   * @param {Uint8Array<ArrayBuffer> | Blob} content
   */
  download(name, content) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([content]));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
    this.screen.showHint(`Saved ${name}`, false);
  }

  /** @param {DataTransfer | null} data */
  dropUse(data) {
    return this.studio.tool === "depth" && this.studio.original && data ? "depth" : "open";
  }

  listen() {
    for (const [button, input, use] of /** @type {[string, string, "open" | "depth" | "stereo" | "mask"][]} */ ([
      ["open", "file", "open"],
      ["load-depth", "depth-file", "depth"],
      ["load-right", "right-file", "stereo"],
      ["load-mask", "mask-file", "mask"],
    ])) {
      const field = /** @type {HTMLInputElement} */ (get(input));
      get(button).addEventListener("click", () => field.click());
      field.addEventListener("change", () => {
        if (field.files?.length) this.open(field.files[0], use);
        field.value = "";
      });
    }
    addEventListener("dragover", (event) => {
      event.preventDefault();
      get("drop").hidden = false;
      get("drop-text").textContent = this.dropUse(event.dataTransfer) === "depth" ? "Drop to load as depth map" : "Drop to open";
    });
    addEventListener("dragleave", (event) => {
      if (!event.relatedTarget) get("drop").hidden = true;
    });
    addEventListener("drop", (event) => {
      event.preventDefault();
      get("drop").hidden = true;
      const file = event.dataTransfer?.files[0];
      if (file) this.open(file, this.dropUse(event.dataTransfer));
    });
    addEventListener("paste", (event) => {
      const file = event.clipboardData?.files[0];
      if (file) this.open(file, this.dropUse(event.clipboardData));
    });
  }

  async downloadProject() {
    if (!this.studio.original) return this.screen.showHint("Open a photograph first.", false);
    this.download(`${this.studio.name.replace(/\.[^.]*$/, "")}.studio`, await saveProject(this.studio));
  }
}
