import net from 'node:net';

export interface RawAnswer {
  /** The status; 0 if the connection was closed without an answer. */
  status: number;
  headers: Readonly<Record<string, string>>;
  body: string;
  /** All received text, for a connection with more than one answer. */
  text: string;
}

/** Milliseconds after which the test fails. No call takes as long on any machine. */
const giveUpMs = 60_000;

/**
 * Sends the bytes unchanged. Reads until the server closes the connection, or until `answersMax` answers are complete
 * and the last answer does not announce the end of the connection. Rejects if neither happens within `giveUpMs`.
 */
export function sendRaw(port: number, bytes: string | Buffer, answersMax = 1): Promise<RawAnswer> {
  const isHead = bytes.toString('latin1').startsWith('HEAD ');
  return new Promise((resolve, reject) => {
    const socket = net.connect(port, '127.0.0.1');
    let text = '';
    const finish = (): void => {
      clearTimeout(timer);
      socket.destroy();
      resolve(parseRaw(text));
    };
    const timer = setTimeout(() => {
      socket.destroy();
      reject(new Error(`neither an answer nor an end: ${JSON.stringify(text)}`));
    }, giveUpMs);
    socket.on('connect', () => socket.write(bytes));
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString('latin1');
      const { complete, closes } = countAnswers(text, isHead);
      if (complete >= answersMax && !closes) finish();
    });
    socket.on('error', finish);
    socket.on('close', finish);
  });
}

/**
 * The number of complete answers, without interim ones (1xx), and whether the last one announces the end of the
 * connection.
 */
function countAnswers(text: string, isHead: boolean): { complete: number; closes: boolean } {
  let [at, complete, closes] = [0, 0, false];
  for (;;) {
    const headEnd = text.indexOf('\r\n\r\n', at);
    if (headEnd === -1) return { complete, closes };
    const { status, headers } = parseRaw(text.slice(at, headEnd + 4));
    const bodyAt = headEnd + 4;
    const end = status < 200 || status === 204 || status === 304 || isHead ? bodyAt : bodyEnd(text, bodyAt, headers);
    if (end === undefined) return { complete, closes };
    if (status >= 200) {
      complete += 1;
      closes = headers['connection'] === 'close';
    }
    at = end;
  }
}

/**
 * The index at which a body ends. Undefined while the body is incomplete, and for a body that lasts until the
 * connection closes.
 */
function bodyEnd(text: string, bodyAt: number, headers: Readonly<Record<string, string>>): number | undefined {
  if (headers['transfer-encoding'] !== 'chunked') {
    const end = bodyAt + Number(headers['content-length']);
    return end <= text.length ? end : undefined;
  }
  for (let at = bodyAt; ; ) {
    const lineEnd = text.indexOf('\r\n', at);
    if (lineEnd === -1) return undefined;
    const size = Number.parseInt(text.slice(at, lineEnd), 16);
    const end = lineEnd + 2 + size + 2;
    if (end > text.length) return undefined;
    if (size === 0) return end;
    at = end;
  }
}

export function parseRaw(text: string): RawAnswer {
  const [head = '', ...rest] = text.split('\r\n\r\n');
  const [line = '', ...lines] = head.split('\r\n');
  const headers = Object.fromEntries(
    lines.map((header) => [
      header.slice(0, header.indexOf(':')).toLowerCase(),
      header.slice(header.indexOf(':') + 1).trim(),
    ]),
  );
  return { status: Number(line.split(' ')[1] ?? 0), headers, body: rest.join('\r\n\r\n'), text };
}

/** A request with this request line and these headers. `Host` and the empty line are added. */
export const rawRequest = (line: string, headers: readonly string[] = [], body = ''): string =>
  [`${line} HTTP/1.1`, 'Host: drydock.test', ...headers, '', body].join('\r\n');
