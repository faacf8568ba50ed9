/** The first bytes of a packet of MySQL's protocol: its length, and its number in the exchange. */
export const packetHeadBytes = 4;

/**
 * An error packet, which every client shows to its user. `sequence` is the number of the packet in whose place it is
 * sent: 0 for the server's greeting, where an error has no SQL state.
 */
export function writeMysqlError(code: number, message: string, { sequence = 0, sqlState = '' } = {}): Buffer {
  const state = sqlState === '' ? '' : `#${sqlState}`;
  const body = Buffer.concat([Buffer.from([0xff, code & 0xff, code >> 8]), Buffer.from(state + message)]);
  const head = Buffer.alloc(packetHeadBytes);
  head.writeUIntLE(body.length, 0, 3);
  head[3] = sequence;
  return Buffer.concat([head, body]);
}
