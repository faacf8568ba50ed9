const cancelRequestCode = 80_877_102;
/**
 * A cancel request is a length, a code, a pid and a key, of four bytes each. From protocol 3.2 on the key may be
 * longer.
 */
const cancelBytesMin = 16;
const sslRequestCode = 80_877_103;
const gssRequestCode = 80_877_104;
/** Postgres' own limit of a startup packet. */
const startupBytesMax = 10_000;

export type FirstPacket =
  | { kind: 'incomplete' }
  | { kind: 'invalid' }
  | { kind: 'encryption'; by: 'tls' | 'gss' }
  /** `pid` is the pid of the backend whose statement is to be cancelled. */
  | { kind: 'cancel'; pid: number; packet: Buffer }
  | { kind: 'startup'; protocol: number; parameters: Map<string, string>; bytes: number };

function parseParameters(body: Buffer): Map<string, string> | null {
  // The body consists of pairs of zero-terminated texts, a name and a value. An empty name ends the body.
  if (body.length < 1 || body[body.length - 1] !== 0) return null;
  const parts = body.subarray(0, -1).toString('utf8').split('\0');
  if (parts.at(-1) !== '' || parts.length % 2 !== 1) return null;
  const parameters = new Map<string, string>();
  for (let at = 0; at + 1 < parts.length; at += 2) parameters.set(parts[at] ?? '', parts[at + 1] ?? '');
  return parameters;
}

/** Reads the first packet that a Postgres client sends. `bytes` is the length of a startup packet within `data`. */
export function readFirstPacket(data: Buffer): FirstPacket {
  if (data.length < 8) return { kind: 'incomplete' };
  const length = data.readUInt32BE(0);
  const code = data.readUInt32BE(4);
  if (length < 8 || length > startupBytesMax) return { kind: 'invalid' };
  if (data.length < length) return { kind: 'incomplete' };
  if (code === sslRequestCode || code === gssRequestCode)
    return length === 8 ? { kind: 'encryption', by: code === sslRequestCode ? 'tls' : 'gss' } : { kind: 'invalid' };
  if (code === cancelRequestCode)
    return length < cancelBytesMin
      ? { kind: 'invalid' }
      : { kind: 'cancel', pid: data.readInt32BE(8), packet: data.subarray(0, length) };
  const parameters = code >>> 16 === 3 ? parseParameters(data.subarray(8, length)) : null;
  return parameters === null ? { kind: 'invalid' } : { kind: 'startup', protocol: code, parameters, bytes: length };
}

/** Makes a startup packet with these parameters. The server gets it in place of the client's packet. */
export function writeStartup(protocol: number, parameters: Map<string, string>): Buffer {
  const body = Buffer.from(`${[...parameters].map(([name, value]) => `${name}\0${value}\0`).join('')}\0`);
  const head = Buffer.alloc(8);
  head.writeUInt32BE(body.length + 8, 0);
  head.writeUInt32BE(protocol, 4);
  return Buffer.concat([head, body]);
}

/** Makes an ErrorResponse of severity FATAL. */
export function writeFatal(sqlState: string, message: string): Buffer {
  const body = Buffer.from(`SFATAL\0VFATAL\0C${sqlState}\0M${message}\0\0`);
  const head = Buffer.alloc(5);
  head.write('E');
  head.writeUInt32BE(body.length + 4, 1);
  return Buffer.concat([head, body]);
}

/** The length of the head of a packet in MySQL's protocol: the packet's length, and its number in the exchange. */
export const packetHeadBytes = 4;

/**
 * Makes an error packet. `sequence` is the number of the packet that the error replaces. An error in place of the
 * server's greeting has number 0 and no SQL state.
 */
export function writeMysqlError(code: number, message: string, { sequence = 0, sqlState = '' } = {}): Buffer {
  const state = sqlState === '' ? '' : `#${sqlState}`;
  const body = Buffer.concat([Buffer.from([0xff, code & 0xff, code >> 8]), Buffer.from(state + message)]);
  const head = Buffer.alloc(packetHeadBytes);
  head.writeUIntLE(body.length, 0, 3);
  head[3] = sequence;
  return Buffer.concat([head, body]);
}
