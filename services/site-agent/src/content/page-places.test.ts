/**
 * @processes
 */
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import http from 'node:http';
import { runSql } from '@drydock/postgres/testing/run-sql';
import { until } from '@drydock/testing/wait';
import { claim, clearHost, type FilledSite, hostConfig, newSiteId, startHost, type TestHost } from '../../test/host';
import { FairPace, PagePlaces, PagesBusy, processesFor } from './page-places';

/** Registers a fake process, which gives its place back when `places` ends it. */
async function start(
  places: PagePlaces,
  organisation: string,
  usedMs: number,
): Promise<{ isBusy: boolean; hasEnded: boolean }> {
  const leave = await places.takeProcess(organisation);
  const process = { organisation, usedMs, isBusy: false, hasEnded: false };
  const forget = places.watch({
    ...process,
    get isBusy() {
      return process.isBusy;
    },
    end: () => {
      process.hasEnded = true;
      forget();
      leave();
    },
  });
  return process;
}

describe('processes for sites’ files', () => {
  it('of one organisation are at most half of all; its next one takes the place of its longest idle one', async () => {
    const places = new PagePlaces({ processes: 8 });
    const own = [];
    for (let number = 0; number < 4; number += 1) own.push(await start(places, 'greedy', number));
    if (own[0] !== undefined) own[0].isBusy = true;
    const next = await start(places, 'greedy', 4);
    expect([...own, next].map(({ hasEnded }) => hasEnded)).toEqual([false, true, false, false, false]);
    expect((await start(places, 'other', 0)).hasEnded).toBe(false);
    expect(own.filter(({ hasEnded }) => hasEnded)).toHaveLength(1);
  });

  it('make room for the first one of another organisation, unless somebody waits for them', async () => {
    const places = new PagePlaces({ processes: 3 });
    const first = await start(places, 'a', 2);
    const [second, third] = [await start(places, 'b', 1), await start(places, 'c', 0)];
    third.isBusy = true;
    await start(places, 'newcomer', 3);
    expect([first, second, third].map(({ hasEnded }) => hasEnded)).toEqual([false, true, false]);
  });

  it('take a quarter of the machine’s memory', () => {
    expect([2 ** 30, 2 ** 34].map(processesFor)).toEqual([16, 64]);
  });
});

test('pages of one organisation beyond its share wait, and too many that wait are refused at once; another organisation’s is rendered', async () => {
  const places = new PagePlaces({ renders: 4 });
  const held = [places.renderNow('greedy'), places.renderNow('greedy')];
  expect([...held, places.renderNow('greedy')].map((place) => place === null)).toEqual([false, false, true]);
  const waiting = Array.from({ length: 256 }, () => places.render('greedy'));
  await expect(places.render('greedy')).rejects.toThrow(PagesBusy);
  expect(places.renderNow('other')).not.toBeNull();
  held[0]?.();
  await expect(Promise.any(waiting)).resolves.toBeInstanceOf(Function);
  expect((await Promise.allSettled(waiting)).filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
});

describe('pages and long files that their visitors do not take', () => {
  let host: TestHost;
  let greedy: FilledSite;
  let other: FilledSite;
  const ids: [string, string] = [newSiteId(), newSiteId()];
  beforeAll(async () => {
    host = await startHost(await hostConfig(), { places: new PagePlaces({ renders: 4, downloads: 4 }) });
    greedy = await host.client.ensureSite(ids[0], { domain: 'greedy.org', organisation_id: 'org-1' }, claim(1));
    other = await host.client.ensureSite(ids[1], { domain: 'other.org', organisation_id: 'org-2' }, claim(1));
    await runSql(greedy.database_url, "create table texts as select repeat('x', 7000000) as text");
    await writeFile(`${greedy.files_dir}/large.html`, '<?sql select text from texts ?>');
    await writeFile(`${greedy.files_dir}/file.txt`, 'a file');
    await writeFile(`${other.files_dir}/page.html`, '<?sql select 7 ?>');
    for (const { files_dir: folder } of [greedy, other])
      await writeFile(`${folder}/long.bin`, Buffer.alloc(20_000_000));
  });
  afterAll(() => clearHost(host, ids));

  it.each(['large.html', 'long.bin'])(
    'are as many as their organisation’s share; other files are shown as ever: %s',
    async (name) => {
      const visitors = [];
      const statuses: (number | undefined)[] = [];
      for (let number = 0; number < 3; number += 1) {
        const visitor = http.get(new URL(name, greedy.url), { agent: false }).on('error', () => undefined);
        visitors.push(visitor);
        const [response] = (await once(visitor, 'response')) as [http.IncomingMessage];
        statuses.push(response.statusCode);
      }
      expect(statuses).toEqual([200, 200, 503]);
      const shown = await Promise.all(
        [new URL('file.txt', greedy.url), new URL('page.html', other.url)].map((url) => fetch(url)),
      );
      expect(await Promise.all(shown.map((response) => response.text()))).toEqual(['a file', '7']);
      expect((await (await fetch(new URL('long.bin', other.url))).arrayBuffer()).byteLength).toBe(20_000_000);
      for (const visitor of visitors) visitor.destroy();
      const again = async (): Promise<boolean> => {
        const response = await fetch(new URL(name, greedy.url));
        await response.body?.cancel();
        return response.status === 200;
      };
      await until(again, { timeoutMs: 60_000, what: 'the page again' });
    },
  );
});

/**
 * Records the organisation of each piece that `pace` lets go. `turn` returns the organisations of the pieces since the
 * last turn, sorted, and begins the next turn.
 */
function follow(pace: FairPace): { take(organisation: string, times: number): void; turn(): string[] } {
  let went: string[] = [];
  return {
    take: (organisation, times) => {
      for (let number = 0; number < times; number += 1) pace.take(organisation, () => went.push(organisation));
    },
    turn: () => {
      const shown = went.toSorted();
      went = [];
      jest.advanceTimersByTime(10);
      return shown;
    },
  };
}

describe('the pace of all', () => {
  beforeEach(() => jest.useFakeTimers());
  afterEach(() => jest.useRealTimers());

  test('an organisation’s pieces beyond its share of a turn wait for later turns', () => {
    const { take, turn } = follow(new FairPace({ max: 4, share: 3 }));
    take('greedy', 7);
    expect([turn(), turn(), turn(), turn()].map(({ length }) => length)).toEqual([3, 3, 1, 0]);
  });

  test('when a turn is full, the waiting organisations alternate in the next turn', () => {
    const { take, turn } = follow(new FairPace({ max: 4, share: 3 }));
    take('a', 20);
    take('b', 20);
    take('c', 1);
    expect(turn()).toEqual(['a', 'a', 'a', 'b']);
    expect(turn()).toEqual(['a', 'a', 'b', 'c']);
    expect(turn()).toEqual(['a', 'a', 'b', 'b']);
  });

  test('after a pause, pieces go at once again', () => {
    const { take, turn } = follow(new FairPace({ max: 4, share: 3 }));
    take('a', 1);
    expect([turn(), turn(), turn()].map(({ length }) => length)).toEqual([1, 0, 0]);
    take('a', 2);
    expect(turn()).toEqual(['a', 'a']);
  });
});
