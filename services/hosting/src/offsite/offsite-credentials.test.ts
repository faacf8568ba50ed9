import { randomBytes } from 'node:crypto';
import { openCredentials, sealCredentials } from './offsite-credentials';

const place = { siteId: 's', endpoint: 'https://storage.example.com', bucket: 'copies', prefix: 'drydock' };
const credentials = { accessKeyId: 'KEY', secretAccessKey: 'a-secret-that-is-nowhere-to-be-read' };
const key = randomBytes(32);
const refused = /unable to authenticate|unknown form/;

describe('sealed credentials', () => {
  it('are opened by the key that sealed them, and show nothing of themselves', () => {
    const sealed = sealCredentials(key, place, credentials);
    expect(openCredentials([key], place, sealed)).toEqual(credentials);
    expect(sealed.toString('latin1')).not.toMatch(/KEY|secret/);
    expect(sealCredentials(key, place, credentials).equals(sealed)).toBe(false);
  });

  it('are opened by any accepted key while the secret is rotated', () => {
    const sealed = sealCredentials(key, place, credentials);
    expect(openCredentials([randomBytes(32), key], place, sealed)).toEqual(credentials);
    expect(() => openCredentials([randomBytes(32), randomBytes(32)], place, sealed)).toThrow(refused);
  });

  it('open nothing with another key, for another place, or with any bit changed', () => {
    const sealed = sealCredentials(key, place, credentials);
    expect(() => openCredentials([randomBytes(32)], place, sealed)).toThrow(refused);
    for (const change of [
      { siteId: 't' },
      { endpoint: 'https://evil.example.com' },
      { bucket: 'other' },
      { prefix: '' },
    ])
      expect(() => openCredentials([key], { ...place, ...change }, sealed)).toThrow(refused);
    for (let at = 0; at < sealed.length; at += 1) {
      const altered = Buffer.from(sealed);
      altered[at] = (altered[at] ?? 0) ^ 1;
      expect(() => openCredentials([key], place, altered)).toThrow(refused);
    }
    expect(() => openCredentials([key], place, Buffer.alloc(0))).toThrow('unknown form');
  });
});
