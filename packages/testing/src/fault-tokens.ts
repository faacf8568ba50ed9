import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

export type FaultMode = 'kill' | 'stop' | 'throw' | 'delay' | 'repeat';

/** A folder of fault tokens. Each token causes one fault in a process that has the folder as DRYDOCK_FAULTS. */
export interface FaultTokens {
  folder: string;
  /** Creates tokens for the next `times` passes of the fault point. */
  arm(point: string, mode: FaultMode, times?: number): void;
  left(): string[];
  clear(): void;
  remove(): void;
}

export function createFaultTokens(): FaultTokens {
  const folder = mkdtempSync(path.join(tmpdir(), 'drydock-fault-tokens-'));
  const left = (): string[] => readdirSync(folder).sort();
  return {
    folder,
    arm: (point, mode, times = 1) => {
      for (let number = 1; number <= times; number += 1)
        writeFileSync(path.join(folder, `${point}@${mode}@${number}`), '');
    },
    left,
    clear: () => {
      for (const name of left()) rmSync(path.join(folder, name), { force: true });
    },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}
