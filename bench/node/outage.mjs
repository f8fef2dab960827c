// A door before the server, through which the clients go: when it is shut, every connection breaks off, and none comes about.
import { connect, createServer } from "node:net"

export class Outage {
  #open = new Set()

  static async before(options) {
    const outage = new Outage(options)
    await outage.#listen(0)
    return outage
  }

  constructor({ host, port }) {
    this.server = { host, port }
    this.door = createServer((client) => this.#carry(client))
  }

  // Resolves when every connection is cut; the door opens again after so long.
  async cut(milliseconds) {
    this.door.close()
    for (const socket of this.#open) socket.resetAndDestroy()
    this.#open.clear()
    setTimeout(() => this.#listen(this.port), milliseconds)
  }

  #carry(client) {
    const server = connect(this.server)
    for (const [socket, other] of [[client, server], [server, client]]) {
      this.#open.add(socket)
      socket.setNoDelay(true)
      socket.on("error", () => {})
      socket.on("close", () => {
        this.#open.delete(socket)
        other.destroy()
      })
      socket.pipe(other)
    }
  }

  #listen(port) {
    return new Promise((resolve) => {
      this.door.listen(port, "127.0.0.1", 4096, () => {
        this.port = this.door.address().port
        resolve()
      })
    })
  }
}
