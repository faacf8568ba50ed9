/**
 * @processes
 * @tier long
 */
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import http from 'node:http';
import { connect, type Socket } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { until } from '@drydock/testing/wait';
import { claim, clearHost, type FilledSite, hostConfig, newSiteId, startHost, type TestHost } from '../../test/host';
import { PagePlaces } from '../content/page-places';

/* Tests how long visitors of applications may take to send their requests and to take their answers. */

/** Counts the bytes of a body at once under /count, and under /later only once the folder has the file `go`. */
const source = `
let broken = 0;
const count = (request, response) => {
  let bytes = 0;
  request.on('data', (part) => { bytes += part.length; }).on('end', () => response.end(String(bytes)));
  request.on('error', () => { broken += 1; });
};
const pages = {
  '/count': count,
  '/later': (...visit) => {
    const timer = setInterval(() => {
      if (!require('node:fs').existsSync('go')) return;
      clearInterval(timer);
      count(...visit);
    }, 20);
  },
  '/broken': (request, response) => response.end(String(broken)),
  '/piece': (request, response) => response.end(Buffer.alloc(60_000, 'x')),
};
require('node:http').createServer((request, response) => pages[request.url](request, response)).listen(1);
`;

const largeBytes = 3_000_000;
/** The longest time that Node's own limit and its next check leave a request that is not whole. */
const longerMs = 12_000;
const unsentMs = 1_000;

let patient: TestHost;
let hasty: TestHost;
let [site, hastySite, plainSite]: FilledSite[] = [];
const ids = [newSiteId(), newSiteId(), newSiteId()] as const;

beforeAll(async () => {
  patient = await startHost(await hostConfig());
  hasty = await startHost(await hostConfig(), {
    places: new PagePlaces({ visits: 2 }), // one for each organisation
    limits: { untakenMs: 3_000, unsentMs },
  });
  site = await patient.client.ensureSite(ids[0], { domain: 'a.org', organisation_id: 'org-1' }, claim(1));
  hastySite = await hasty.client.ensureSite(ids[1], { domain: 'b.org', organisation_id: 'org-1' }, claim(1));
  plainSite = await hasty.client.ensureSite(ids[2], { domain: 'c.org', organisation_id: 'org-2' }, claim(1));
  for (const { files_dir: folder } of [site, hastySite]) await writeFile(`${folder}/app.js`, source);
  for (const { url } of [site, hastySite]) await fetch(new URL('broken', url));
});
afterAll(async () => {
  await clearHost(patient, [ids[0]]);
  await clearHost(hasty, [ids[1], ids[2]]);
});

const urlOf = (page: string, of = hastySite): URL => new URL(page, of?.url);
const statusOf = async (page: string): Promise<number> => (await fetch(urlOf(page))).status;

interface Posted {
  request: http.ClientRequest;
  /** The status and the text of the answer. */
  answer: Promise<[number | undefined, string]>;
}

function post(url: URL, bytes: number): Posted {
  const request = http.request(url, { method: 'POST', agent: false, headers: { 'content-length': bytes } });
  const answer = new Promise<[number | undefined, string]>((resolve, reject) => {
    request.on('error', reject).on('response', (response) => {
      let text = '';
      response.on('data', (part: Buffer) => {
        text += part.toString();
      });
      response.on('error', reject).on('end', () => resolve([response.statusCode, text]));
    });
  });
  answer.catch(() => undefined); // A test that ends early does not await it.
  return { request, answer };
}

/** Opens a connection, and says this text. */
function say(of: FilledSite | undefined, text: string): { socket: Socket; said(): string } {
  let said = '';
  const socket = connect(Number(urlOf('', of).port), '127.0.0.1', () => socket.write(text));
  socket
    .on('error', () => undefined)
    .on('data', (part: Buffer) => {
      said += part.toString('latin1');
    });
  return { socket, said: () => said };
}

describe('a request’s body', () => {
  test('that comes slowly but steadily for longer than ten seconds is answered by the application', async () => {
    const pieces = 13;
    const { request, answer } = post(urlOf('count', site), pieces);
    for (let number = 0; number < pieces; number += 1) {
      request.write('x');
      await wait(longerMs / (pieces - 1));
    }
    request.end();
    expect(await answer).toEqual([200, String(pieces)]);
  });

  test('that waits for longer than ten seconds while its site is frozen is answered by the application', async () => {
    await patient.client.freezeSite(ids[0], 60_000, claim(2));
    const { request, answer } = post(urlOf('count', site), largeBytes);
    request.end(Buffer.alloc(largeBytes));
    await wait(longerMs);
    await patient.client.thawSite(ids[0], claim(2));
    expect(await answer).toEqual([200, String(largeBytes)]);
  });

  test('that stalls is ended with 408, and the application learns of it', async () => {
    const { socket, said } = say(hastySite, 'POST /count HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nhalf');
    await once(socket, 'close');
    expect(said()).toMatch(/^HTTP\/1\.1 408 /);
    const broken = async (): Promise<string> => (await fetch(urlOf('broken'))).text();
    await until(async () => (await broken()) === '1', { what: 'the application hears of it' });
  });

  test('that the application does not read yet has not stalled', async () => {
    const { request, answer } = post(urlOf('later'), largeBytes);
    request.end(Buffer.alloc(largeBytes));
    await wait(2 * unsentMs);
    await writeFile(`${hastySite?.files_dir}/go`, '');
    expect(await answer).toEqual([200, String(largeBytes)]);
  });

  test('that nobody reads must end soon after the answer, however steadily it comes', async () => {
    const { socket, said } = say(plainSite, 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n');
    const drip = setInterval(() => socket.write('x'), unsentMs / 10);
    await once(socket, 'close');
    clearInterval(drip);
    expect(said()).toMatch(/^HTTP\/1\.1 405 /);
  });
});

test('a visitor who does not take the last piece of an answer loses its place', async () => {
  const { socket } = say(hastySite, '');
  socket.pause();
  // Each answer is one piece. The kernel takes the first answers, so there are more requests until an answer is stuck.
  let looks = 0;
  const isFree = async (): Promise<boolean> => (await statusOf('count')) === 200;
  const isStuck = async (): Promise<boolean> => {
    if (await isFree()) {
      looks = 0;
      socket.write('GET /piece HTTP/1.1\r\nHost: a\r\n\r\n');
    } else looks += 1;
    return looks === 25;
  };
  await until(isStuck, { what: 'an answer that the kernel does not take' });
  expect(await until(isFree, { what: 'a place' })).toBe(true);
  socket.destroy();
});
