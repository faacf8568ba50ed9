import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { z } from 'zod';

/**
 * A file with an emulator's state. It is replaced in one step, so that a kill -9 leaves the old state or the new one.
 */
export interface StateFile<State> {
  read(fallback: () => State): State;
  write(state: State): void;
}

export function openStateFile<State>(stateDir: string, schema: z.ZodType<State>): StateFile<State> {
  mkdirSync(stateDir, { recursive: true, mode: 0o700 });
  const file = path.join(stateDir, 'state.json');
  return {
    read: (fallback) => (existsSync(file) ? schema.parse(JSON.parse(readFileSync(file, 'utf8'))) : fallback()),
    write: (state) => {
      writeFileSync(`${file}.new`, JSON.stringify(state), { mode: 0o600 });
      renameSync(`${file}.new`, file);
    },
  };
}
