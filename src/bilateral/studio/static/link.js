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
    /** @type {WebSocket | null} */
    this.socket = null;
    this.connect();
  }

  connect() {
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
      this.onChange(false);
      if (this.refused) return;
      // After an idle time, wait for the person to come back.
      const idle = event.code === 4408;
      const again = () => this.connect();
      if (idle) addEventListener("pointermove", again, { once: true });
      else setTimeout(again, this.wait);
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
    if (this.socket && this.up) this.socket.send(pack(header, payload));
  }
}
