import { open } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { until } from '@drydock/testing/wait';

export interface GuestConsole {
  /** Runs the command and resolves with its output. @throws unless its exit code is 0 */
  run(command: string): Promise<string>;
  /** Sends the command and waits for nothing. */
  say(command: string): void;
  close(): void;
}

/** Milliseconds for the guest to boot. An emulated guest boots slowly on a busy machine. */
const bootMs = 120_000;
const commandMs = 60_000;

/** Opens the machine's serial console, once the guest of `qemu-guest/` reads from it. */
export async function openConsole(machineFolder: string): Promise<GuestConsole> {
  const socket = await connectTo(machineFolder);
  let said = '';
  socket.on('data', (chunk: Buffer) => {
    said += chunk.toString();
  });
  socket.on('error', () => undefined);
  const run = async (command: string): Promise<string> => {
    said = '';
    socket.write(`${command}\n`);
    const ending = /GUEST exit (\d+)\r?\n/;
    const match = await until(() => ending.exec(said) ?? false, {
      timeoutMs: commandMs,
      everyMs: 20,
      what: `the guest's answer to ${command}`,
    });
    if (match[1] !== '0') throw new Error(`${command}: ${said}`);
    return said.slice(0, match.index).trim();
  };
  await awaitGuest(socket, () => said);
  return { run, say: (command) => void socket.write(`${command}\n`), close: () => socket.destroy() };
}

/**
 * Waits until the guest reads from the serial port, which drops input while the guest boots. `echo up` is repeated
 * until an answer comes. After the answer to `echo last`, no earlier answer can follow.
 */
async function awaitGuest(socket: Socket, heard: () => string): Promise<void> {
  const asking = setInterval(() => socket.write('\necho up\n'), 250);
  try {
    await until(() => /up\r?\nGUEST exit 0/.test(heard()), {
      timeoutMs: bootMs,
      everyMs: 20,
      what: 'a guest that has booted',
    });
  } finally {
    clearInterval(asking);
  }
  socket.write('echo last\n');
  await until(() => /last\r?\nGUEST exit 0\r?\n/.test(heard()), {
    timeoutMs: commandMs,
    everyMs: 20,
    what: 'the last answer',
  });
}

async function connectTo(machineFolder: string): Promise<Socket> {
  const folder = await open(machineFolder, 'r');
  try {
    const socket = connect(`/proc/self/fd/${folder.fd}/console.sock`);
    await new Promise<void>((resolve, reject) => socket.once('connect', resolve).once('error', reject));
    return socket;
  } finally {
    await folder.close();
  }
}
