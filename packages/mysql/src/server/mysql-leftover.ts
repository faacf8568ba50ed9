import path from 'node:path';
import { endProcess, waitUntilLeft } from '@drydock/process/end-process';
import { listProcessesIn, type ProcessProof, proveProcess, readCommandLine } from '@drydock/process/process-proof';

/** How long a leftover server has for each of: shutdown, kill. */
const graceMs = 20_000;

/**
 * Makes a data folder free to start on. A server of an earlier run that still works in it is ended, because two at once
 * would destroy the data. Its working directory and its command line prove that it is such a server.
 */
export async function clearLeftoverMysql(data: string): Promise<void> {
  for (const proof of findServers(data)) {
    if (!(await endProcess(proof, ['SIGTERM', 'SIGKILL'], graceMs))) {
      throw new Error(`The server (pid ${proof.pid}) of an earlier run on ${data} cannot be ended`);
    }
  }
  await waitUntilLeft(data, graceMs);
}

function findServers(data: string): ProcessProof[] {
  const isServer = (pid: number): boolean =>
    readCommandLine(pid)
      .split(' ')
      .some((word) => ['mariadbd', 'mysqld'].includes(path.basename(word)));
  return listProcessesIn(data)
    .filter(isServer)
    .map(proveProcess)
    .filter((proof) => proof !== null);
}
