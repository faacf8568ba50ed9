import type { IncomingMessage, ServerResponse } from 'node:http';
import { jsonReply, Refusal, type Reply } from '../protocol/call';
import { matchRoute, type Route } from '../protocol/routes';
import { sendReply } from '../protocol/send-reply';
import { isSame } from '../protocol/tokens';

interface AdminRequest {
  request: IncomingMessage;
  response: ServerResponse;
  routes: readonly Route[];
  token: string;
}

/** The calls that every emulator takes with its admin token. */
export function answerAdmin(admin: AdminRequest): void {
  void replyTo(admin).then(
    (reply) => sendReply(admin.response, reply),
    () => admin.response.destroy(),
  );
}

async function replyTo({ request, routes, token }: AdminRequest): Promise<Reply> {
  const pieces: Buffer[] = [];
  for await (const piece of request) if (Buffer.isBuffer(piece)) pieces.push(piece);
  if (!isSame(request.headers.authorization ?? '', `Bearer ${token}`))
    return jsonReply(401, { error: 'admin token required' });
  const url = new URL(`http://s3${request.url ?? '/'}`);
  const call = {
    method: request.method ?? 'GET',
    path: url.pathname,
    query: url.searchParams,
    headers: {},
    body: Buffer.concat(pieces),
  };
  const match = matchRoute(routes, call);
  if (match.kind !== 'found') return jsonReply(match.kind === 'unknown' ? 404 : 405, { error: 'no such route' });
  try {
    return await match.handle();
  } catch (error) {
    if (error instanceof Refusal) return error.reply;
    throw error;
  }
}
