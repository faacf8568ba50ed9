import { metadataChangeSchema } from '@drydock/contracts/platform/values';
import { changeMetadata } from './change-metadata';

const many = (count: number): Record<string, string> =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`k${index}`, 'v']));

describe('metadata', () => {
  it('keeps names that are not given, sets given ones, and removes a name by null or the empty text', () => {
    const changed = changeMetadata({ a: '1', b: '2', c: '3', d: '4' }, { b: null, c: '', d: 'x', e: 'y', f: null });
    expect(changed).toEqual({ a: '1', d: 'x', e: 'y' });
    expect(changeMetadata({ a: '1' })).toEqual({ a: '1' });
  });

  it('has at most twenty names after the change', () => {
    expect(Object.keys(changeMetadata(many(20), { k0: null, new: 'v' }))).toHaveLength(20);
    expect(() => changeMetadata(many(20), { new: 'v' })).toThrow(expect.objectContaining({ code: 'invalid_request' }));
  });

  it.each([
    ['an empty name', { '': 'v' }],
    ['a name of 41 characters', { ['k'.repeat(41)]: 'v' }],
    ['a name with a control character', { 'a\u0000': 'v' }],
    ['a value of 501 characters', { k: 'v'.repeat(501) }],
    ['a value that cannot be stored', { k: 'a\u0000' }],
    ['a value that is half a character', { k: '\ud800' }],
    ['a number', { k: 1 }],
    ['an object', { k: {} }],
  ])('refuses %s', (_what, change) => {
    expect(metadataChangeSchema.safeParse(change).success).toBe(false);
  });

  it('accepts names that every JavaScript object has, such as constructor', () => {
    const change = metadataChangeSchema.parse(JSON.parse('{"constructor":"a","toString":"b"}'));
    expect(changeMetadata({}, change)).toEqual({ constructor: 'a', toString: 'b' });
  });
});
