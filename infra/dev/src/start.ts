// `npm start`: the whole of Drydock in processes on this machine, with demo content, until Ctrl-C.
import { announce } from './announce';
import { bootstrapKey } from './bootstrap-key';
import type { Demo } from './demo/demo-file';
import { seedDemo } from './demo/seed-demo';
import { describeSite } from './describe-site';
import { type DevConfig, readDevConfig } from './dev-config';
import { hostingCommand } from './hosting-command';
import { hetznerAdminOf } from './programs/hetzner-emulator';
import { s3KeysOf } from './programs/s3-emulator';
import { vendorAdminOf } from './programs/vendor-emulator';
import { runSteps } from './progress';
import { openStack, type Stack } from './stack';
import { stopOnSignal } from './stop-on-signal';

const say = (line: string): void => void process.stderr.write(`${line}\n`);

async function main(): Promise<void> {
  const config = readDevConfig(process.env);
  const stack = await openStack(config, say);
  const { isStopping } = stopOnSignal(() => {
    say('Stopping …');
    return stack.stop();
  });
  try {
    const demo = await bringUp(stack, config);
    process.stdout.write(announce(demo, config.dataDir, stack.notes()));
    process.send?.('ready'); // to a test that started us
  } catch (error) {
    if (isStopping()) return; // what was under way failed because everything is going away; the signal's handler exits
    say(error instanceof Error ? error.message : String(error));
    await stack.stop();
    process.exit(1);
  }
}

async function bringUp(stack: Stack, config: DevConfig): Promise<Demo> {
  let demo: Demo | undefined;
  const seed = async (tell: (line: string) => void): Promise<void> => {
    const around = stack.surroundings();
    demo = await seedDemo({
      dataDir: config.dataDir,
      baseUrl: `http://127.0.0.1:${around.portOf('gateway')}`,
      processesFile: stack.processesFile,
      extent: config.demo,
      describeSite: (siteId) => describeSite(around, siteId),
      bootstrap: (name) => bootstrapKey(around, name),
      customerStorage: { live: s3KeysOf('customer', around), sandbox: s3KeysOf('sandboxCustomer', around) },
      vendor: vendorAdminOf(around),
      hostingCommand: (verb, deletedSiteId) => hostingCommand(around, verb, deletedSiteId),
      hetzner: hetznerAdminOf(around),
      say: tell,
    });
  };
  await runSteps([...stack.steps, { title: 'Demo content', run: seed }]);
  if (demo === undefined) throw new Error('No demo content was made');
  return demo;
}

void main().catch((error: unknown) => {
  say(error instanceof Error ? error.message : String(error));
  process.exit(1);
});
