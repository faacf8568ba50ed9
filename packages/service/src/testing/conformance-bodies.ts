import { ask, assertRefused, type Rule } from './conformance-rule';

/**
 * The specified operations with a body: 1, 3, 4, 5 and 10 of the README. The list is written here, so that a wrong
 * contract cannot make it longer.
 */
const specifiedWithBody: ReadonlySet<string> = new Set([
  'createApiKey',
  'restoreSiteBackup',
  'restoreSiteVendorSnapshot',
  'restoreSiteOffsite',
  'upgradeDatabase',
]);

export const bodyRules: readonly Rule[] = [
  {
    name: 'a body that is not JSON is 400 and one of another type 415; both are 422 if the specification lists neither',
    appliesTo: ({ body }) => body !== undefined,
    check: async (world, endpoint, things) => {
      const isClosed = specifiedWithBody.has(endpoint.id);
      const cut = await ask(world, endpoint, things, { body: Buffer.from('{"a":') });
      assertRefused(cut, isClosed ? '422 invalid_json' : '400 malformed_json', 'half an object');
      const text = await ask(world, endpoint, things, {
        body: Buffer.from('{}'),
        headers: { 'content-type': 'text/plain' },
      });
      assertRefused(text, isClosed ? '422 invalid_content_type' : '415 unsupported_media_type', 'text/plain');
    },
  },
];
