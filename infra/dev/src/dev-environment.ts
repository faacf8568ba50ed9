import fs from 'node:fs';
import path from 'node:path';
import { isSameProcess, type ProcessProof } from '@drydock/process';
import { z } from 'zod';
import { writeJsonAtomically } from './data-folder';
import { readDevConfig } from './dev-config';

const devEnvironmentSchema = z.object({
  owner: z.object({ pid: z.int().positive(), startedTicks: z.string() }),
  port: z.int(),
  environment: z.record(z.string(), z.string()),
  down: z.string().nullable().default(null),
});

/** The facts that `npm run dev:call` needs about a service that runs without a gateway. */
export interface DevEnvironment {
  /** The process that started the service and its databases. The service ends with this process. */
  owner: ProcessProof;
  port: number;
  environment: Readonly<Record<string, string>>;
  /** The reason why the service does not answer now, or null. */
  down: string | null;
}

export const devDataDir = (service: string): string => path.join(readDevConfig(process.env).dataDir, 'dev', service);
const fileOf = (service: string): string => path.join(devDataDir(service), 'environment.json');

export function publishDevEnvironment(service: string, environment: DevEnvironment): void {
  fs.mkdirSync(devDataDir(service), { recursive: true, mode: 0o711 });
  writeJsonAtomically(fileOf(service), environment);
}

/** Returns null if nothing has started the service, or if the process that started it has ended. */
export function readDevEnvironment(service: string): DevEnvironment | null {
  const file = fileOf(service);
  if (!fs.existsSync(file)) return null;
  const environment = devEnvironmentSchema.parse(JSON.parse(fs.readFileSync(file, 'utf8')));
  return isSameProcess(environment.owner) ? environment : null;
}
