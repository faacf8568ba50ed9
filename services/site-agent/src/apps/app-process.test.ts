/** @processes */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { AppLog, AppProcess } from './app-process';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(path.join(os.tmpdir(), 'drydock-app-process-'));
  await writeFile(path.join(folder, 'app.js'), "require('node:http').createServer(() => undefined).listen(1);");
});
afterAll(() => rm(folder, { recursive: true }));

const start = (generation: number): Promise<AppProcess> =>
  AppProcess.start(generation, {
    isolation: { kind: 'none', reason: 'this test needs none' },
    isRiskTaken: true,
    isDiskFull: () => false,
    filesDir: folder,
    log: new AppLog(path.join(folder, 'app.log')),
    database: { url: 'postgresql://nowhere', accept: () => undefined },
    uid: null,
    network: null,
    onStart: () => undefined,
  });
const socketPathOf = (app: AppProcess): string => Reflect.get(app, 'socketPath');

test('an ended application takes no connection, even if another application’s socket has got its descriptor’s number', async () => {
  const ended = await Promise.all([1, 2, 3, 4, 5].map(start));
  await Promise.all(ended.map((app) => app.stop()));
  const others: AppProcess[] = [];
  try {
    // A new descriptor gets the lowest free number, so one of the next applications gets that of an ended one.
    const findTwins = (): [AppProcess, AppProcess][] =>
      ended.flatMap((app): [AppProcess, AppProcess][] =>
        others.flatMap((other) => (socketPathOf(other) === socketPathOf(app) ? [[app, other]] : [])),
      );
    while (others.length < 30 && findTwins().length === 0) others.push(await start(others.length + 6));
    const [[app, other]] = findTwins() as [[AppProcess, AppProcess]];
    (await other.connect()).destroy();
    await expect(app.connect()).rejects.toThrow('has ended');
  } finally {
    await Promise.all(others.map((other) => other.stop()));
  }
});
