/**
 * Attacks a whole stack, for at least a minute in `npm run chaos`. In `npm run test:all` whole-stack.test.ts runs this
 * suite on a stack that several suites share.
 *
 * @tier chaos
 * @processes
 */
import fs from 'node:fs';
import path from 'node:path';
import { isChaos } from '@drydock/testing/scope';
import type { TestStack } from '@drydock/testing/stack';
import { until } from '@drydock/testing/wait';
import { z } from 'zod';
import { compare, failuresOf, Neighbour, prepareAttacker, reportOf } from './noisy-neighbour';
import { startStack } from './one-stack';
import { put, Tenant, type TenantSite } from './tenant';

/*
 * A customer makes these attacks with its API keys, its sites and its databases. docs/security.md says where each
 * attack succeeded on an older version. To repeat the attacks on an older version, copy this folder over that version's
 * folder.
 */
jest.setTimeout(900_000);

let stack: TestStack;
let attacker: Tenant;
let victim: Tenant;
let victimsSite: TenantSite;

beforeAll(async () => {
  stack = await startStack({ environment: { DRYDOCK_DEMO: 'sites' } });
  attacker = new Tenant(stack, stack.demo.live_key);
  victim = new Tenant(stack, stack.demo.other_org_key);
  victimsSite = await victim.makeSite('victim.example.org');
  put(victimsSite, 'wp-config.php', 'the password of another organisation');
});
afterAll(() => stack?.stop());

test('an application reads no other organisation’s files, no secret of the installation and no environment of a process of ours', async () => {
  const site = await attacker.makeSite('spy.example.com');
  const wanted = [
    path.join(fs.realpathSync(victimsSite.filesDir), 'wp-config.php'),
    path.join(stack.dataDir, 'master.key'),
  ];
  const source = `const fs = require('fs');
    const read = (file) => { try { return String(fs.readFileSync(file)); } catch { return ''; } };
    const files = [...${JSON.stringify(wanted)}, '/proc/' + process.ppid + '/environ', ...fs.readdirSync('/proc').filter((name) => /^\\d+$/.test(name) && Number(name) !== process.pid).map((pid) => '/proc/' + pid + '/environ')];
    require('http').createServer((_, answer) => answer.end(JSON.stringify(files.map(read)))).listen(1);`;
  put(site, 'app.js', source);
  const loot = await until(
    async () => {
      const response = await fetch(site.url);
      return response.ok && z.array(z.string()).parse(await response.json());
    },
    { timeoutMs: 240_000, what: 'the application' },
  );
  const secret = /SECRET=|DATABASE_URL=postgres(?:ql)?:\/\/postgres:|the password of another organisation/;
  const found = loot
    .flatMap((text) => text.split('\0').filter((line) => secret.test(line)))
    .map((line) => line.split('=')[0]);
  expect({ found, masterKey: loot[1] }).toEqual({ found: [], masterKey: '' });
});

/** The answers that the attacker must get, by attack. They prove that the attacks reach the platform's limits. */
const refusals = [
  'page huge 500',
  'page notice 500',
  'page quadratic 200',
  'connections 53300',
  'bodies 503 overloaded',
  'streams 429 too_many_streams',
];
const missingOf = (tally: Record<string, number>): string[] =>
  refusals.filter((refusal) => (tally[refusal] ?? 0) === 0);
/** The longest wait for all refusals, in milliseconds. An older version of Drydock may never refuse. */
const giveUpMs = 400_000;

test('while one organisation does its worst it is refused, and no call of another one fails', async () => {
  const pidOfHost = stack.processes()['site-host']?.pid;
  const seconds = isChaos ? 60 : 0;
  const backups = isChaos ? 20 : 1;
  // Two measurements of 20 backups on ten sites are four backups of each site. A site may have five a day.
  const neighbour = await Neighbour.prepare(victim, isChaos ? 10 : 1);
  const worst = await prepareAttacker(stack, attacker, isChaos ? 4 : 2);
  const during = (isOver: () => boolean | Promise<boolean>) => {
    const startedMs = performance.now();
    const isEnough = async (rounds: number): Promise<boolean> => {
      const ms = performance.now() - startedMs;
      return ms > giveUpMs || (rounds >= 10 && ms >= seconds * 1_000 && (await isOver()));
    };
    return neighbour.measure(isEnough, backups);
  };
  try {
    const quiet = isChaos ? await during(() => true) : {};
    await worst.start();
    const attacked = await during(async () => missingOf(await worst.tally()).length === 0);
    expect({ failures: failuresOf(attacked), notRefused: missingOf(await worst.tally()) }).toEqual({
      failures: [],
      notRefused: [],
    });
    // The attacker takes all sessions that its sites can get (row 8 of docs/security.md). The page of another
    // organisation's new site must still get a session.
    const newcomer = await victim.makeSite('newcomer.example.org');
    put(newcomer, 'index.html', '<?sql select 7 ?>');
    expect(await (await fetch(newcomer.url)).text()).toBe('7');
    expect(stack.processes()['site-host']?.pid).toBe(pidOfHost);
    if (!isChaos) return;
    process.stdout.write(reportOf(quiet, attacked, await worst.tally()));
    for (const location of worst.restores) {
      const restore = await attacker.follow(location, 300_000);
      expect([restore.status, /"code":"(\w+)"/.exec(restore.text)?.[1]]).toEqual(['failed', 'backup_content_refused']);
    }
    expect(compare(quiet, attacked).filter(({ ratio }) => !(ratio <= 3))).toEqual([]);
  } finally {
    await worst.stop();
  }
});
