const authenticationCodes = { ok: 0, saslFinal: 12 };
const sslRequestCode = 80_877_103;
const gssRequestCode = 80_877_104;

/** Whether the client's bytes are a request for encryption, which the server answers by a single byte that is no message. */
export function isEncryptionRequest(bytes: Buffer): boolean {
  if (bytes.length !== 8) return false;
  const code = bytes.readUInt32BE(4);
  return code === sslRequestCode || code === gssRequestCode;
}

/** Terminate has no answer. */
export const isTerminate = (bytes: Buffer): boolean => bytes.length === 5 && bytes[0] === 0x58;

function endsTurn(message: Buffer): boolean {
  const type = String.fromCharCode(message[0] ?? 0);
  if (type === 'Z' || type === 'G' || type === 'W') return true;
  if (type !== 'R') return false;
  const code = message.readUInt32BE(5);
  return code !== authenticationCodes.ok && code !== authenticationCodes.saslFinal;
}

/**
 * Follows the server's messages and says when it hands the turn to the client: ReadyForQuery, a COPY in, or a question of authentication.
 * A synchronous client must read up to exactly there: less loses an answer, more waits for ever.
 */
export class TurnReader {
  private pending: Buffer = Buffer.alloc(0);
  private isLastTurnEnd = false;

  /** Takes the next bytes of the server; true when they end on a message that hands over the turn. */
  push(bytes: Buffer): boolean {
    this.pending = this.pending.length > 0 ? Buffer.concat([this.pending, bytes]) : bytes;
    while (this.pending.length >= 5) {
      const length = this.pending.readUInt32BE(1) + 1;
      if (this.pending.length < length) return false;
      this.isLastTurnEnd = endsTurn(this.pending.subarray(0, length));
      this.pending = this.pending.subarray(length);
    }
    return this.pending.length === 0 && this.isLastTurnEnd;
  }
}
