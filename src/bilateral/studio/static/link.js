// The connection to the server. It opens again by itself; the page then sends everything anew.

import { pack, unpack } from "./protocol.js";

/** @typedef {import("./protocol.js").Message} Message */
/** @typedef {import("./protocol.js").Header} Header */

export class Link {
  /**
   * @param {(message: Message) => void} onMessage
   * @param {(up: boolean) => void} onChange
   */
  constructor(onMessage, onChange) {
    this.onMessage = onMessage;
    this.onChange = onChange;
    this.wait = 250;
    this.refused = false;
    /** The server closed an idle connection: it opens again with the next sign of life. */
    this.rests = false;
    /** @type {WebSocket | null} */
    this.socket = null;
    for (const kind of ["pointermove", "pointerdown", "keydown", "wheel", "focus", "dragover", "paste"]) {
      addEventListener(kind, () => this.wake(), { capture: true, passive: true });
    }
    this.connect();
  }

  wake() {
    if (this.rests) this.connect();
  }

  connect() {
    this.rests = false;
    const socket = new WebSocket(`ws://${location.host}/socket`);
    socket.binaryType = "arraybuffer";
    this.socket = socket;
    socket.onmessage = (event) => {
      const message = unpack(event.data);
      if (message.header.kind === "hello") {
        this.wait = 250;
        this.onChange(true);
      }
      if (message.header.kind === "full") this.refused = true;
      this.onMessage(message);
    };
    socket.onclose = (event) => {
      // After an idle time, wait for the person to come back.
      this.rests = event.code === 4408;
      this.onChange(false);
      if (this.refused || this.rests) return;
      setTimeout(() => this.connect(), this.wait);
      this.wait = Math.min(2 * this.wait, 3000);
    };
  }

  get up() {
    return this.socket !== null && this.socket.readyState === WebSocket.OPEN;
  }

  /**
   * Send a message; without a connection it is dropped, because everything is sent anew later.
   * @param {Header} header
   * @param {Uint8Array<ArrayBuffer>} [payload]
   */
  send(header, payload) {
    this.wake();
    if (this.socket && this.up) this.socket.send(pack(header, payload));
  }
}
