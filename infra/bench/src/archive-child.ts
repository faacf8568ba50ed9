// Packs or extracts one archive in a process of its own, so that the measured memory contains nothing else. Prints the
// time and the memory as JSON. With the argument `serve` it runs the commands that its parent process sends.
import fs from 'node:fs';
import path from 'node:path';
import { directoryRoot, extract, folderSink, folderSource, pack, verifyArchive } from '@drydock/archive';
import { z } from 'zod';

const key = Buffer.alloc(32, 7);
const identity = { archiveId: 'bench-archive', siteId: 'bench-site', orgId: 'bench-org', sequence: 1 };
const macFile = (archive: string): string => path.join(archive, '..', `${path.basename(archive)}.mac`);

/**
 * Returns the present resident memory. The peak that Linux records (VmHWM) is not used, because it may come from the
 * start of the process, before the measured work.
 */
const residentMb = (): number => process.memoryUsage.rss() / 1e6;

async function run(command: string, archive: string, folder: string): Promise<void> {
  if (command === 'pack' || command === 'take') {
    fs.mkdirSync(archive, { recursive: true });
    const result = await pack({
      roots: [directoryRoot('files', folder)],
      sink: folderSink(archive),
      key,
      identity,
      createdAt: new Date(),
    });
    fs.writeFileSync(macFile(archive), result.manifestMac);
    const { archiveId, siteId, orgId } = identity;
    // Drydock completes a backup only after it has read the whole archive back and compared every MAC. So `take` does
    // the same.
    if (command === 'take')
      await verifyArchive(folderSource(archive), key, { archiveId, siteId, orgId, manifestMac: result.manifestMac });
    return;
  }
  const manifestMac = fs.readFileSync(macFile(archive), 'utf8');
  const { archiveId, siteId, orgId } = identity;
  await extract({
    chain: [{ source: folderSource(archive), expected: { archiveId, siteId, orgId, manifestMac } }],
    key,
    roots: { files: folder },
  });
}

const orderSchema = z.object({ command: z.string(), archive: z.string(), folder: z.string() });

function serve(): void {
  process.on('message', (message) => {
    const { command, archive, folder } = orderSchema.parse(message);
    run(command, archive, folder).then(
      () => process.send?.({ error: null }),
      (error: unknown) => process.send?.({ error: String(error) }),
    );
  });
}

async function main(): Promise<void> {
  const [command = '', archive = '', folder = ''] = process.argv.slice(2);
  if (command === 'serve') return serve();
  globalThis.gc?.();
  const idleMb = residentMb();
  let peakMb = idleMb;
  const sampler = setInterval(() => {
    peakMb = Math.max(peakMb, residentMb());
  }, 20);
  const started = performance.now();
  await run(command, archive, folder);
  clearInterval(sampler);
  process.stdout.write(
    JSON.stringify({
      seconds: (performance.now() - started) / 1000,
      idleMb,
      grownMb: Math.max(peakMb, residentMb()) - idleMb,
    }),
  );
}

main().catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`);
  process.exit(1);
});
