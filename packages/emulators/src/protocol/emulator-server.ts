import { createServer, type IncomingMessage, type Server } from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';
import { closeServer, listen } from '@drydock/service/http';
import { closeOnSignal, createLifetime } from '@drydock/service/process';
import { createLog } from '@drydock/service/telemetry';
import {
  type Call,
  type CallLog,
  emptyReply,
  jsonReply,
  matchRoute,
  Refusal,
  type Reply,
  type Route,
  sendReply,
} from './call';
import { type FaultOrders, faultyStatus, sendFaulty } from './faults';

export interface Emulator {
  faults: FaultOrders;
  calls: CallLog;
  /** Answers a call of the emulated protocol. */
  answer(call: Call): Reply | Promise<Reply>;
  /** Routes below /emulator. Each of these routes already checks the caller's token. */
  adminRoutes: readonly Route[];
}

/** The limit is larger than any request of the emulated protocols. */
const bodyBytesMax = 8 * 1024 * 1024;

/** Creates the server of an emulator. Requested faults affect calls of the protocol, and no calls below /emulator. */
export function createEmulatorServer(emulator: Emulator): Server {
  return createServer((request, response) => {
    void (async () => {
      const call = await readCall(request);
      if (call === null) return response.destroy();
      if (call.path === '/healthz' || call.path === '/readyz')
        return sendReply(response, jsonReply(200, { status: 'ok' }));
      if (call.path.startsWith('/emulator/')) return sendReply(response, await answerAdmin(emulator.adminRoutes, call));
      const fault = emulator.faults.take(call.method, call.path);
      if (fault === null || (fault.answer.kind === 'as_usual' && fault.delayMs === 0)) {
        const reply = await refusing(() => emulator.answer(call));
        emulator.calls.add({ at: Date.now(), method: call.method, path: call.path, status: reply.status });
        return sendReply(response, reply);
      }
      if (fault.delayMs > 0) await wait(fault.delayMs);
      const isReal = fault.isCarriedOut || fault.answer.kind === 'as_usual' || fault.answer.kind === 'edited';
      const reply = isReal ? await refusing(() => emulator.answer(call)) : emptyReply(200);
      emulator.calls.add({
        at: Date.now(),
        method: call.method,
        path: call.path,
        status: faultyStatus(reply.status, fault.answer),
      });
      await sendFaulty(response, reply, fault.answer);
    })().catch(() => response.destroy());
  });
}

async function answerAdmin(routes: readonly Route[], call: Call): Promise<Reply> {
  const match = matchRoute(routes, call);
  if (match.kind === 'found') return await refusing(match.handle);
  return jsonReply(match.kind === 'unknown' ? 404 : 405, { error: 'no such route' });
}

async function refusing(work: () => Reply | Promise<Reply>): Promise<Reply> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof Refusal) return error.reply;
    throw error;
  }
}

async function readCall(request: IncomingMessage): Promise<Call | null> {
  const pieces: Buffer[] = [];
  let length = 0;
  for await (const piece of request) {
    if (!Buffer.isBuffer(piece)) return null;
    length += piece.length;
    if (length > bodyBytesMax) return null;
    pieces.push(piece);
  }
  const url = new URL(request.url ?? '/', 'http://emulator');
  const headers = Object.fromEntries(
    Object.entries(request.headers).map(([name, value]) => [name, Array.isArray(value) ? value.join(', ') : value]),
  );
  return {
    method: request.method ?? 'GET',
    path: url.pathname,
    query: url.searchParams,
    headers,
    body: Buffer.concat(pieces),
  };
}

interface ProcessConfig {
  SERVICE_NAME: string;
  HOST: string;
  PORT: number;
  LOG_LEVEL: string;
}

/** Runs an emulator as a process until it gets a signal. */
export function runEmulator<Config extends ProcessConfig>(
  readConfig: () => Config,
  create: (config: Config) => Server,
): void {
  start(readConfig, create).catch((error: unknown) => {
    process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`);
    process.exitCode = 1;
    // A failed start ends the process, because an emulator that is only partly started would seem to work.
    process.exit();
  });
}

async function start<Config extends ProcessConfig>(
  readConfig: () => Config,
  create: (config: Config) => Server,
): Promise<void> {
  const config = readConfig();
  const log = createLog({ service: config.SERVICE_NAME, level: config.LOG_LEVEL });
  const lifetime = createLifetime(log);
  const server = create(config);
  const { url } = await listen(server, config.PORT, config.HOST);
  lifetime.onClose('server', () => closeServer(server));
  log.info({ url }, 'emulator is up');
  closeOnSignal(lifetime, log);
}
