import { until } from '@drydock/testing/wait';
import { type Occupant, SessionPlaces } from './session-places';

/** A time to log in that never ends within a test. */
const longMs = 1_000_000;

interface Server {
  places: SessionPlaces;
  /** Ports of clients that have logged in. */
  known: Set<number>;
  /** The names of the open sessions. `ended` has the names of those that were ended. */
  here: string[];
  ended: string[];
  come: (origin: string, name: string) => void;
  leave: (name: string) => void;
}

function serverOf(size: number, graceMs: number): Server {
  const known = new Set<number>();
  const places = new SessionPlaces({ places: () => size, graceMs, readKnownPorts: async () => new Set(known) });
  const leaves = new Map<string, () => void>();
  const server: Server = {
    places,
    known,
    here: [],
    ended: [],
    come: (origin, name) =>
      places.wait(
        {},
        {
          origin,
          enter: () => {
            const occupant: Occupant = {
              origin,
              port: server.here.length + server.ended.length + 1,
              end: () => end(name),
            };
            server.here.push(name);
            leaves.set(name, places.add(occupant));
          },
        },
      ),
    leave: (name) => {
      server.here = server.here.filter((other) => other !== name);
      leaves.get(name)?.();
    },
  };
  const end = (name: string): void => {
    server.ended.push(name);
    // A real backend ends a moment later.
    setImmediate(() => server.leave(name));
  };
  return server;
}

test('a client from another address gets the place of the oldest session that has not logged in, at once', async () => {
  const server = serverOf(3, longMs);
  for (const name of ['member', 'flood 1', 'flood 2', 'flood 3', 'flood 4']) {
    server.come('one address', name);
    if (name === 'member') server.known.add(1);
  }
  expect(server.here).toEqual(['member', 'flood 1', 'flood 2']);
  server.come('another', 'owner');
  await until(() => server.here.includes('owner'));
  expect(server.ended).toEqual(['flood 1']);
  expect(server.here).toEqual(['member', 'flood 2', 'owner']);
  for (const name of server.here) server.leave(name);
  expect(server.here).toEqual(['flood 3', 'flood 4']);
});

test('a client from the same address waits until the oldest session has had its time to log in, and then gets its place', async () => {
  const server = serverOf(2, 0);
  for (const name of ['flood 1', 'flood 2', 'owner']) server.come('one address', name);
  await until(() => server.here.includes('owner'));
  expect(server.ended).toEqual(['flood 1']);
});

test('if all sessions have logged in, one more client at a time is let through, for the server to refuse', async () => {
  const server = serverOf(2, longMs);
  server.known.add(1).add(2);
  for (const name of ['member 1', 'member 2', 'third', 'fourth']) server.come('one address', name);
  await until(() => server.here.includes('third'));
  server.leave('third');
  await until(() => server.here.includes('fourth'));
  expect(server.here).toEqual(['member 1', 'member 2', 'fourth']);
  expect(server.ended).toEqual([]);
});

test('no session is ended if the server does not answer, and a client that has gone waits no more', async () => {
  let asked = 0;
  const places = new SessionPlaces({
    places: () => 1,
    graceMs: 0,
    readKnownPorts: () => {
      asked += 1;
      return Promise.reject(new Error('down'));
    },
  });
  const entered: string[] = [];
  const ended: string[] = [];
  const client = {};
  const leave = places.add({ origin: 'a', port: 1, end: () => ended.push('first') });
  places.wait(client, { origin: 'b', enter: () => entered.push('gone') });
  places.wait({}, { origin: 'c', enter: () => entered.push('second') });
  places.forget(client);
  await until(() => asked >= 2);
  leave();
  expect([entered, ended]).toEqual([['second'], []]);
});
