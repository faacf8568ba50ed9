/**
 * Stages harmful and damaged dumps on hosts over ssh, one for each database server.
 *
 * @tier long
 * @processes
 */
import { randomBytes } from 'node:crypto';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { pack, type StreamEntry, streamRoot } from '@drydock/archive';
import { uuidv7 } from 'uuidv7';
import { describeOn, type SshRig, sshRigs } from '../../../test/ssh-host';
import { newSiteRef, nextOrder, packCurrent } from '../../../test/ssh-order';
import { localBackupStorage } from '../backup-storage.local';
import type { SiteRef } from '../site-host';

const archiveKey = randomBytes(32);
const folder = mkdtempSync(path.join(tmpdir(), 'drydock-ssh-dumps-'));
const storage = localBackupStorage(folder);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe.each(sshRigs)('the site host $name', (host) => {
  const isText = host.name.includes('MariaDB');
  const onHost = describeOn(host);
  onHost('with a dump', () => {
    let rig: SshRig;
    beforeAll(async () => {
      rig = await host.open(archiveKey);
    });
    afterAll(() => rig.close());

    const givenSite = async (): Promise<SiteRef> => {
      const site = newSiteRef();
      await rig.driver.create(site, { domain: 'shop.example.com' }, nextOrder());
      await rig.fill(site, 1);
      return site;
    };

    it('a site’s login reaches no other site’s database and runs no program', async () => {
      const [site, other] = [await givenSite(), await givenSite()];
      const into = { ...rig.loginOf(site), database: rig.loginOf(other).database };
      await expect(rig.database.ask(into, 'SELECT v FROM version')).rejects.toThrow(/denied/);
      const program = isText ? "SELECT 1 INTO OUTFILE '/dev/null'" : "COPY version FROM PROGRAM 'echo 1'";
      await expect(rig.database.ask(rig.loginOf(site), program)).rejects.toThrow(/denied|privileges/);
    });

    it('are refused together when the dump is none, and nothing that is served changes', async () => {
      const site = await givenSite();
      const before = await rig.stateOf(site);
      const dump = await sealed(site, 'database.dump', 'no dump');
      const sql = await sealed(site, 'database.sql', 'CREATE nonsense;');
      const [own, foreign] = isText ? [sql, dump] : [dump, sql];
      await expect(rig.driver.stage(site, 'next', own, nextOrder())).rejects.toMatchObject({
        refusal: 'content_not_loaded',
      });
      await expect(rig.driver.stage(site, 'next', foreign, nextOrder())).rejects.toMatchObject({
        refusal: 'unsupported',
      });
      expect(await rig.driver.describe(site)).toMatchObject({ currentRelease: 'first', releases: ['first'] });
      expect(await rig.stateOf(site)).toEqual(before);
    });

    it('a dump that cannot be read to its end is tried again, not blamed', async () => {
      const site = await givenSite();
      const archive = await packCurrent(rig.driver, site, storage);
      const stop = new AbortController();
      const order = { ...nextOrder(), signal: stop.signal, progress: () => stop.abort(new Error('lease lost')) };
      await expect(rig.driver.stage(site, 'next', archive, order)).rejects.toThrow('lease lost');
      await rig.driver.stage(site, 'next', archive, nextOrder());
    });

    // The custom format of Postgres is not text, so no client can find commands in it.
    if (isText)
      it('that is text runs nothing on the host and reaches nothing but its own database', async () => {
        const [site, other, mark] = [await givenSite(), await givenSite(), path.join(folder, 'mark')];
        const before = await rig.stateOf(other);
        for (const line of [
          `\\! touch ${mark}`,
          `system touch ${mark}`,
          `\\T ${mark}`,
          `tee ${mark}`,
          'source /etc/passwd',
        ]) {
          const archive = await sealed(site, 'database.sql', `SELECT 1;\n${line}\n;`);
          await expect(rig.driver.stage(site, 'next', archive, nextOrder())).rejects.toMatchObject({
            refusal: 'content_not_loaded',
          });
        }
        const elsewhere = `DROP TABLE \`${rig.loginOf(other).database}\`.version;`;
        const archive = await sealed(site, 'database.sql', elsewhere);
        await expect(rig.driver.stage(site, 'next', archive, nextOrder())).rejects.toMatchObject({
          refusal: 'content_not_loaded',
        });
        expect(existsSync(mark)).toBe(false);
        expect(await rig.stateOf(other)).toEqual(before);
      });
  });
});

async function* entry(name: string, content: Buffer): AsyncGenerator<StreamEntry> {
  yield {
    path: name,
    content: (async function* () {
      yield content;
    })(),
  };
}

/** An archive with a dump that no dumper wrote, and an empty tar. */
async function sealed(site: SiteRef, dumpPath: string, dump: string) {
  const [archiveId, key] = [uuidv7(), `live/${uuidv7()}/1`];
  const { manifestMac } = await pack({
    roots: [
      streamRoot('files', entry('files.tar', Buffer.alloc(10_240))),
      streamRoot('database', entry(dumpPath, Buffer.from(dump))),
    ],
    sink: storage.sink(key),
    key: archiveKey,
    identity: { archiveId, siteId: site.siteId, orgId: site.orgId, sequence: 1 },
    createdAt: new Date(),
  });
  return { source: storage.source(key), archiveId, manifestMac };
}
