// `npm run bench [NAME…]`: measures Drydock and comparable programs on this machine, and prints their ratios. No test
// runs the benchmarks, because times depend on the machine. The ratios depend on it much less.
import { readCommandLine } from '@drydock/process';
import { benchAccept } from './accept';
import { benchExtraction, benchMemory } from './extraction';
import { benchFirstStep } from './first-step';
import { benchGateway } from './gateway';
import { benchIdle } from './idle';
import { benchListKeys } from './list-keys';
import { benchOffsite } from './offsite';
import { benchPages } from './pages';
import { say } from './report';
import { benchRestoreCard } from './restore-card';
import { benchScale } from './scale';
import { benchTakeBackup } from './take-backup';
import { benchTelemetry } from './telemetry';
import { benchUpgrade } from './upgrade';
import { benchUpgradeMysql } from './upgrade-mysql';
import { benchWebhooks } from './webhooks';

const benches: Record<string, () => Promise<void>> = {
  extraction: benchExtraction,
  memory: benchMemory,
  gateway: benchGateway,
  telemetry: benchTelemetry,
  'list-keys': benchListKeys,
  accept: benchAccept,
  'first-step': benchFirstStep,
  'restore-card': benchRestoreCard,
  'take-backup': benchTakeBackup,
  offsite: benchOffsite,
  pages: benchPages,
  upgrade: benchUpgrade,
  'upgrade-mysql': benchUpgradeMysql,
  webhooks: benchWebhooks,
  scale: benchScale,
  idle: benchIdle,
};

async function main(names: string[]): Promise<void> {
  const unknown = names.filter((name) => !Object.hasOwn(benches, name));
  if (unknown.length > 0)
    throw new Error(`There is no benchmark ${unknown.join(', ')}. There are: ${Object.keys(benches).join(', ')}.`);
  for (const [name, bench] of Object.entries(benches)) {
    if (names.length > 0 && !names.includes(name)) continue;
    say(`== ${name}`);
    await bench();
  }
}

const usage = `npm run bench [NAME…]   (${Object.keys(benches).join(', ')})`;
main(readCommandLine(usage, { options: {}, wordsMax: Number.POSITIVE_INFINITY }).positionals).then(
  () => process.exit(0),
  (error: unknown) => {
    say(error instanceof Error ? (error.stack ?? error.message) : String(error));
    process.exit(1);
  },
);
