import { open } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { errorCodeOf } from '@drydock/process';
import { z } from 'zod';

/**
 * The two sockets of QEMU's monitor. Each socket serves one client at a time. Reads have a separate socket, so they do
 * not wait for changes.
 */
type Monitor = 'work.sock' | 'look.sock';

/** Thrown if no process listens on the socket, or if the process closes the connection without an answer. */
class NotRunning extends Error {
  override readonly name = 'NotRunning';
}

/** Thrown if QEMU has read the command and refused it. */
class QmpRefusal extends Error {
  override readonly name = 'QmpRefusal';
}

interface QmpCall {
  machineFolder: string;
  monitor: Monitor;
  command: string;
  args?: object;
  deadlineMs: number;
}

const lineSchema = z.looseObject({
  id: z.string().optional(),
  return: z.unknown().optional(),
  error: z.looseObject({ desc: z.string() }).optional(),
});

/**
 * Sends one command to QEMU's monitor and resolves with its result. @throws NotRunning, QmpRefusal, or the error of the
 * connection. After the deadline it is unknown whether the command was carried out
 */
export async function askQmp(call: QmpCall): Promise<unknown> {
  const folder = await open(call.machineFolder, 'r').catch((error: unknown) => {
    throw errorCodeOf(error) === 'ENOENT' ? new NotRunning('no such machine') : error;
  });
  try {
    // The path goes through /proc, because the path of a socket may have only 107 characters and the path of the folder
    // may be longer.
    return await talk(connect(path.join(`/proc/self/fd/${folder.fd}`, call.monitor)), call);
  } finally {
    await folder.close();
  }
}

async function talk(socket: Socket, { command, args = {}, deadlineMs }: QmpCall): Promise<unknown> {
  const timer = setTimeout(
    () => socket.destroy(new Error(`no answer to ${command} within ${deadlineMs} ms`)),
    deadlineMs,
  );
  try {
    return await new Promise((resolve, reject) => {
      socket.once('error', (error) =>
        reject(isNobody(error) ? new NotRunning('nobody listens', { cause: error }) : error),
      );
      socket.once('close', () => reject(new NotRunning('the connection was closed')));
      const lines = createInterface({ input: socket }).on('line', (line) => readLine(line, resolve, reject));
      // `lines` repeats the errors of the socket, which are handled above.
      lines.on('error', () => undefined);
      socket.write(
        `{"execute":"qmp_capabilities"}\n${JSON.stringify({ execute: command, arguments: args, id: 'asked' })}\n`,
      );
    });
  } finally {
    clearTimeout(timer);
    socket.destroy();
  }
}

/**
 * Resolves or rejects the call if the line is its answer. The greeting, events and the answer to `qmp_capabilities`
 * have no id.
 */
function readLine(line: string, resolve: (value: unknown) => void, reject: (error: Error) => void): void {
  try {
    const { id, return: value, error } = lineSchema.parse(JSON.parse(line));
    if (id !== 'asked') return;
    if (error === undefined) resolve(value);
    else reject(new QmpRefusal(error.desc));
  } catch (error) {
    reject(error instanceof Error ? error : new Error(String(error)));
  }
}

const isNobody = (error: unknown): boolean =>
  ['ENOENT', 'ECONNREFUSED', 'ECONNRESET', 'EPIPE'].includes(errorCodeOf(error));

/** The time limit of a read. A healthy machine answers within a millisecond. */
const readMs = 2_000;
const statusSchema = z.looseObject({ status: z.string() });

/** QEMU's run state of the machine; `off` if it has no process, `unresponsive` if its process does not answer. */
export async function readStatus(machineFolder: string): Promise<string> {
  try {
    const answer = await askQmp({ machineFolder, monitor: 'look.sock', command: 'query-status', deadlineMs: readMs });
    return statusSchema.parse(answer).status;
  } catch (error) {
    return error instanceof NotRunning ? 'off' : 'unresponsive';
  }
}
