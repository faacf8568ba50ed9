import { type Duplex, finished } from 'node:stream';

/** Calls `go` as soon as the organisation's connections may pass on another piece of data. */
export type InTurn = (go: () => void) => void;

/**
 * Reads a socket piece by piece. The read of each piece waits for its turn, however small the piece is. Bytes that
 * arrive during this wait collect in the kernel, so several small writes of the sender become one piece. `onPiece`
 * calls `next` when it is ready for another piece. Returns a function that ends the reading and leaves the socket
 * paused.
 */
export function hearInTurn(
  socket: Duplex,
  inTurn: InTurn,
  onPiece: (piece: Buffer, next: () => void) => void,
): () => void {
  // Node keeps reading a paused socket until this many bytes are buffered. The default of 16 kB or more would allow
  // thousands of pieces of one byte.
  Reflect.set(Reflect.get(socket, '_readableState'), 'highWaterMark', 1);
  let mayHear = false;
  let isOver = false;
  const next = (): void =>
    inTurn(() => {
      if (isOver) return;
      mayHear = true;
      if (socket.isPaused()) socket.resume();
    });
  const hear = (piece: Buffer): void => {
    mayHear = false;
    onPiece(piece, next);
    if (!mayHear && !isOver) socket.pause();
  };
  socket.pause();
  socket.on('data', hear);
  next();
  return () => {
    isOver = true;
    socket.off('data', hear);
    socket.pause();
  };
}

/** Passes on the data of one direction until `from` ends. */
export function carryInTurn(from: Duplex, to: Duplex, inTurn: InTurn): void {
  hearInTurn(from, inTurn, (piece, next) => {
    if (to.write(piece)) next();
    else to.once('drain', next);
  });
  from.once('end', () => to.end());
}

/** Passes on the data of both directions until both have ended or one has failed. */
export function joinInTurn(client: Duplex, upstream: Duplex, inTurn: InTurn): void {
  const carry = (from: Duplex, to: Duplex): void => {
    carryInTurn(from, to, inTurn);
    from.once('close', () => {
      if (!from.readableEnded || !from.writableFinished) to.destroy();
    });
  };
  carry(client, upstream);
  carry(upstream, client);
}

/**
 * Resolves with the text that arrives on the socket before `end`. The bytes after `end` stay in the socket. Rejects if
 * more than `bytesMax` bytes arrive without `end`, or if the socket ends or closes before `end`.
 */
export function hearUntil(socket: Duplex, end: string, bytesMax: number, inTurn: InTurn): Promise<string> {
  return new Promise((resolve, reject) => {
    let said: Buffer = Buffer.alloc(0);
    const stop = hearInTurn(socket, inTurn, (piece, next) => {
      said = Buffer.concat([said, piece]);
      const at = said.indexOf(end);
      if (at < 0 && said.length <= bytesMax) {
        next();
        return;
      }
      stop();
      forget();
      if (at < 0) reject(new Error(`no end within ${bytesMax} bytes`));
      else {
        socket.unshift(said.subarray(at + end.length));
        resolve(said.toString('latin1', 0, at));
      }
    });
    const forget = finished(socket, { writable: false }, () => {
      stop();
      forget();
      reject(new Error('the socket ended too early'));
    });
  });
}
