import { randomInt } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { isPortFree } from '@drydock/process/free-port';
import { z } from 'zod';
import { writeJsonAtomically } from './write-file-atomically';

const portsSchema = z.record(z.string(), z.int());

/** Below the range from which Linux and macOS give ports to outgoing connections, so that none of those takes one between two starts. */
const firstPort = 20_000;
const lastPort = 29_999;

export interface PortBook {
  /** The same port as at the last start; another only when a stranger listens on it by now, which `say` is told. */
  settle(name: string): Promise<number>;
  /** Notes a port that was given. @throws when somebody listens on it */
  insist(name: string, port: number): Promise<number>;
}

/** Ports by process, kept in `<dataDir>/ports.json`. Call `settle` for processes that are not running yet. */
export function openPortBook(dataDir: string, say: (line: string) => void): PortBook {
  const file = path.join(dataDir, 'ports.json');
  const ports = fs.existsSync(file) ? portsSchema.parse(JSON.parse(fs.readFileSync(file, 'utf8'))) : {};
  const keep = (name: string, port: number): number => {
    ports[name] = port;
    writeJsonAtomically(file, ports);
    return port;
  };
  return {
    settle: async (name) => {
      const kept = ports[name];
      if (kept !== undefined && (await isPortFree(kept))) return kept;
      const port = await findQuietPort(new Set(Object.values(ports)));
      if (kept !== undefined) say(`Port ${kept} of ${name} is taken by another program; it moves to ${port}`);
      return keep(name, port);
    },
    insist: async (name, port) => {
      if (!(await isPortFree(port)))
        throw new Error(`Port ${port} is taken by another program. DRYDOCK_PORT=<another> npm start moves Drydock.`);
      return keep(name, port);
    },
  };
}

async function findQuietPort(taken: ReadonlySet<number>): Promise<number> {
  for (;;) {
    const port = randomInt(firstPort, lastPort + 1);
    if (!taken.has(port) && (await isPortFree(port))) return port;
  }
}
