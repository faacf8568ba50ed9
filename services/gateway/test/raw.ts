import net from 'node:net';

export interface RawAnswer {
  /** 0: the connection was closed without an answer. */
  status: number;
  headers: Readonly<Record<string, string>>;
  body: string;
  /** Everything that came, for more than one answer. */
  text: string;
}

/** Sends bytes as they are and reads until the other side closes or nothing came for `quietMs`. */
export function sendRaw(port: number, bytes: string | Buffer, quietMs = 60): Promise<RawAnswer> {
  return new Promise((resolve) => {
    const socket = net.connect(port, '127.0.0.1');
    const chunks: Buffer[] = [];
    let timer: NodeJS.Timeout | undefined;
    const finish = (): void => {
      clearTimeout(timer);
      socket.destroy();
      resolve(parseRaw(Buffer.concat(chunks).toString('latin1')));
    };
    const wait = (): void => {
      clearTimeout(timer);
      timer = setTimeout(finish, chunks.length === 0 ? quietMs * 30 : quietMs);
    };
    socket.on('connect', () => {
      socket.write(bytes);
      wait();
    });
    socket.on('data', (chunk) => {
      chunks.push(chunk);
      wait();
    });
    socket.on('error', finish);
    socket.on('close', finish);
  });
}

export function parseRaw(text: string): RawAnswer {
  const [head = '', ...rest] = text.split('\r\n\r\n');
  const [line = '', ...lines] = head.split('\r\n');
  const headers = Object.fromEntries(
    lines.map((header) => [header.slice(0, header.indexOf(':')).toLowerCase(), header.slice(header.indexOf(':') + 1).trim()]),
  );
  return { status: Number(line.split(' ')[1] ?? 0), headers, body: rest.join('\r\n\r\n'), text };
}

/** A request line and headers; `Host` and the end are added. */
export const rawRequest = (line: string, headers: readonly string[] = [], body = ''): string =>
  [`${line} HTTP/1.1`, 'Host: drydock.test', ...headers, '', body].join('\r\n');
