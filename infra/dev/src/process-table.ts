import fs from 'node:fs';
import path from 'node:path';
import type { ProcessProof } from '@drydock/process/process-proof';
import { z } from 'zod';
import { writeJsonAtomically } from './write-file-atomically';

const proofsSchema = z.record(z.string(), z.object({ pid: z.int().positive(), startedTicks: z.string(), program: z.string() }));

/** What identifies a process of an earlier run: its pid, its start time, and a text that its command line holds. */
export type NotedProcess = ProcessProof & { program: string };

export interface ProcessTable {
  file: string;
  up(name: string, process: NotedProcess, port: number): void;
  down(name: string): void;
}

const proofsFile = (dataDir: string): string => path.join(dataDir, 'proofs.json');

/**
 * `<dataDir>/processes.json` says which process of ours has which pid and port right now; whoever is down is not in it.
 * `proofs.json` beside it holds what the next start needs to recognise a leftover.
 */
export function openProcessTable(dataDir: string): ProcessTable {
  const file = path.join(dataDir, 'processes.json');
  const running = new Map<string, { pid: number; port: number }>();
  const proofs = new Map<string, NotedProcess>();
  const write = (): void => {
    writeJsonAtomically(proofsFile(dataDir), Object.fromEntries(proofs));
    writeJsonAtomically(file, Object.fromEntries(running));
  };
  write();
  return {
    file,
    up: (name, process, port) => {
      running.set(name, { pid: process.pid, port });
      proofs.set(name, process);
      write();
    },
    down: (name) => {
      running.delete(name);
      proofs.delete(name);
      write();
    },
  };
}

/** The processes that an earlier run noted and did not strike out, by name. */
export function readNotedProcesses(dataDir: string): Record<string, NotedProcess> {
  const file = proofsFile(dataDir);
  return fs.existsSync(file) ? proofsSchema.parse(JSON.parse(fs.readFileSync(file, 'utf8'))) : {};
}
