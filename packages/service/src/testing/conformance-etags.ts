import assert from 'node:assert/strict';
import { hasEntityTag } from '@drydock/contracts/platform/endpoint';
import { endpointsOf } from './ask-endpoint';
import { ask, assertRefused, assertSucceeded, canSucceed, type Rule } from './conformance-rule';

/** Rules for conditional requests, which name a known state of a record by its ETag. */
export const entityTagRules: readonly Rule[] = [
  {
    name: 'a client that names the ETag, weak or in a list, gets 304, and any other client the whole answer',
    appliesTo: (endpoint) => endpoint.method === 'GET' && hasEntityTag(endpoint),
    check: async (world, endpoint, things) => {
      if (!canSucceed(world, endpoint)) return;
      const had = await ask(world, endpoint, things);
      assertSucceeded(endpoint, had);
      const etag = String(had.headers['etag']);
      assert.match(etag, /^"[A-Za-z0-9_-]{27}"$/);
      assert.equal(
        (await ask(world, endpoint, things, { headers: { 'if-none-match': '"other", other, ""' } })).status,
        200,
      );
      for (const named of [etag, `W/${etag}`, `"other", ${etag}`, '*']) {
        const again = await ask(world, endpoint, things, { headers: { 'if-none-match': named } });
        // Some answers differ each time, because they contain a cursor or values of the moment. Then their ETags must
        // differ too.
        if (named !== '*' && again.status === 200)
          assert.notEqual(again.headers['etag'], etag, `${named}: ${again.text}`);
        else assert.deepEqual([again.status, again.text, again.headers['content-type']], [304, '', undefined], named);
      }
    },
  },
  {
    name: 'a PATCH with If-Match changes only the version that it names, and of two simultaneous ones one succeeds',
    appliesTo: ({ method }) => method === 'PATCH',
    check: async (world, endpoint, things) => {
      const read = endpointsOf(endpoint.service).find(({ method, path }) => method === 'GET' && path === endpoint.path);
      assert.ok(read !== undefined, 'what can be patched can be read');
      const now = await ask(world, read, things);
      const etag = String(now.headers['etag']);
      for (const stale of ['"other"', `W/${etag}`, etag.slice(1, -1), '']) {
        const refused = await ask(world, endpoint, things, { headers: { 'if-match': stale } });
        assertRefused(refused, '412 precondition_failed', stale);
      }
      assert.equal((await ask(world, read, things)).text, now.text, 'a refused change changes nothing');
      const race = await Promise.all(
        [1, 2].map(() => ask(world, endpoint, things, { headers: { 'if-match': `"other", ${etag}` } })),
      );
      const made = race.find(({ status }) => status === 200);
      assert.deepEqual(
        race.map(({ status }) => status).sort((a, b) => a - b),
        [200, 412],
        race.map(({ text }) => text).join(),
      );
      assert.equal((await ask(world, read, things)).text, made?.text, 'a PATCH answers what GET does');
      assertSucceeded(endpoint, await ask(world, endpoint, things, { headers: { 'if-match': '*' } }));
      assertSucceeded(endpoint, await ask(world, endpoint, things));
    },
  },
];
