import { createSocket } from 'node:dgram';
import { once } from 'node:events';

export interface NameServer {
  /** The address in the form that DOMAIN_NAME_SERVERS takes. */
  address: string;
  /** TXT records by name; a test changes them. */
  records: Map<string, string[]>;
  close(): Promise<void>;
}

const [txt, classIn, headerBytes] = [16, 1, 12];

/** Starts a name server over UDP that knows only TXT records. */
export async function startNameServer(): Promise<NameServer> {
  const records = new Map<string, string[]>();
  const socket = createSocket('udp4');
  socket.on('message', (query, { port, address }) => socket.send(answerTo(query, records), port, address));
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  return {
    address: `127.0.0.1:${socket.address().port}`,
    records,
    close: async () => {
      socket.close();
      await once(socket, 'close');
    },
  };
}

function answerTo(query: Buffer, records: ReadonlyMap<string, string[]>): Buffer {
  const labels: string[] = [];
  let at = headerBytes;
  for (let length = query.readUInt8(at); length > 0; length = query.readUInt8(at)) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length));
    at += 1 + length;
  }
  const question = query.subarray(headerBytes, at + 5);
  const values = query.readUInt16BE(at + 1) === txt ? (records.get(labels.join('.').toLowerCase()) ?? []) : [];
  const header = Buffer.alloc(headerBytes);
  query.copy(header, 0, 0, 2);
  // The flags of a response with recursion available. The code is NXDOMAIN if there is no record.
  header.writeUInt16BE(values.length > 0 ? 0x8180 : 0x8183, 2);
  header.writeUInt16BE(1, 4);
  header.writeUInt16BE(values.length, 6);
  return Buffer.concat([header, question, ...values.map(recordOf)]);
}

function recordOf(value: string): Buffer {
  const text = Buffer.from(value);
  const head = Buffer.alloc(12);
  // The record's name is a pointer to the name in the question.
  head.writeUInt16BE(0xc000 | headerBytes, 0);
  head.writeUInt16BE(txt, 2);
  head.writeUInt16BE(classIn, 4);
  head.writeUInt32BE(0, 6);
  head.writeUInt16BE(1 + text.length, 10);
  return Buffer.concat([head, Buffer.from([text.length]), text]);
}
