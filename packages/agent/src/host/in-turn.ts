import type { Duplex } from 'node:stream';

/** Calls back at once, or when the organisation may have another piece of its connections carried. */
export type InTurn = (go: () => void) => void;

/**
 * Hears a socket piece by piece. Every piece takes a turn, however small the other side makes it; what comes until that turn is put together by
 * the kernel. `onPiece` calls `next` when it is ready for another one. Returns what ends the hearing and leaves the socket paused.
 */
export function hearInTurn(socket: Duplex, inTurn: InTurn, onPiece: (piece: Buffer, next: () => void) => void): () => void {
  // A paused socket of Node reads on until it holds this many bytes: with the default, 16,384 pieces of one byte.
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

/** Carries one way, to the end of what `from` says. */
export function carryInTurn(from: Duplex, to: Duplex, inTurn: InTurn): void {
  hearInTurn(from, inTurn, (piece, next) => {
    if (to.write(piece)) next();
    else to.once('drain', next);
  });
  from.once('end', () => to.end());
}

/** Carries both ways until both have ended, or one has failed. */
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

/** Resolves with what the socket says before `end`, and leaves the rest to be read. Rejects when more than `bytesMax` come without it. */
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
      if (at < 0) reject(new Error(`no end within ${bytesMax} bytes`));
      else {
        socket.unshift(said.subarray(at + end.length));
        resolve(said.toString('latin1', 0, at));
      }
    });
  });
}
