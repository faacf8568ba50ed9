import { request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http';
import { pipeline } from 'node:stream/promises';
import type { AppProcess } from '../apps/app-process';
import { AppDown, type AppRunner, type RestartWish } from '../apps/app-runner';
import { generationHeader } from './probe-site';

/** Between two hops only (RFC 9110, 7.6.1), and the header that lets a probe in, which is nobody else's business. */
const notForwarded = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'x-drydock-probe',
  'x-forwarded-for',
]);

/** Names and values by turns. */
function forwarded(raw: readonly string[]): string[] {
  const kept: string[] = [];
  for (let at = 0; at + 1 < raw.length; at += 2) {
    const [name = '', value = ''] = raw.slice(at, at + 2);
    if (!notForwarded.has(name.toLowerCase())) kept.push(name, value);
  }
  return kept;
}

/** Tells a probe which process is due, and starts it. Throws {@link AppDown}. */
export async function announceGeneration(response: ServerResponse, app: AppRunner, wish: RestartWish): Promise<void> {
  response.setHeader(generationHeader, String((await app.take(wish)).generation));
}

/** Answers a request by the application. Throws {@link AppDown} when nothing of an answer came. */
export async function forwardToApp(request: IncomingMessage, response: ServerResponse, running: AppProcess): Promise<void> {
  await running.use(() => relay(request, response, running));
}

function relay(request: IncomingMessage, response: ServerResponse, { agent, socketPath }: AppProcess): Promise<void> {
  return new Promise((resolve, reject) => {
    const headers = [...forwarded(request.rawHeaders), 'X-Forwarded-For', request.socket.remoteAddress ?? ''];
    const upstream = httpRequest({ agent, socketPath, method: request.method, path: request.url, headers });
    response.once('close', () => upstream.destroy());
    upstream.once('error', (error) => reject(new AppDown('the application did not answer', { cause: error })));
    upstream.once('response', (answer) => {
      try {
        passHead(answer, response);
      } catch (error) {
        upstream.destroy();
        reject(new AppDown('the application answered what is no HTTP', { cause: error }));
        return;
      }
      pipeline(answer, response).then(resolve, reject);
    });
    // A body that breaks off ends the request to the application, whose error says so.
    pipeline(request, upstream).catch(() => undefined);
  });
}

/** Throws where Node can read an answer and not write it, as one with the status 000. Nothing of it is sent then. */
function passHead(answer: IncomingMessage, response: ServerResponse): void {
  const headers = pairsOf(forwarded(answer.rawHeaders));
  try {
    for (const [name, value] of headers) response.appendHeader(name, value);
    response.writeHead(answer.statusCode ?? 502, answer.statusMessage);
  } catch (error) {
    for (const [name] of headers) response.removeHeader(name);
    throw error;
  }
}

const pairsOf = (raw: readonly string[]): [string, string][] =>
  raw.flatMap((name, at): [string, string][] => (at % 2 === 0 ? [[name, raw[at + 1] ?? '']] : []));
