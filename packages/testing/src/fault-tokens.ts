import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

export type FaultMode = 'kill' | 'stop' | 'throw' | 'delay' | 'repeat';

/** A folder of one-shot tokens for `faultpoint`. Processes get `folder` as DRYDOCK_FAULTS. */
export interface FaultTokens {
  folder: string;
  /** Makes the next `times` passes of the point do what `mode` says, one token for each. */
  arm(point: string, mode: FaultMode, times?: number): void;
  /** The file names of the tokens that no process has used. */
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
