import { readFileSync } from 'node:fs';
import path from 'node:path';
import { envExample } from '@drydock/service/testing/env-example';
import { configShape, readGatewayConfig } from './config';

const secret = 'ab'.repeat(32);
const least = { KEYS_URL: 'http://127.0.0.1:1', KEYS_TOKEN_SECRET: secret };

describe('the settings', () => {
  it('require only the keys service', () => {
    expect(readGatewayConfig(least)).toMatchObject({
      upstreams: { keys: { urls: [least.KEYS_URL] } },
      redisUrl: undefined,
      rateLimitScale: 1,
    });
    expect(() => readGatewayConfig({})).toThrow(/KEYS_URL is not set/);
  });

  it('require the URL and the secret of a service together', () => {
    const hosting = { ...least, HOSTING_URL: 'http://127.0.0.1:2' };
    expect(() => readGatewayConfig(hosting)).toThrow(/HOSTING_TOKEN_SECRET/);
    expect(readGatewayConfig({ ...hosting, HOSTING_TOKEN_SECRET: secret }).upstreams.hosting).toEqual({
      urls: [hosting.HOSTING_URL],
      tokenSecret: secret,
    });
  });

  it('accept several processes of a service', () => {
    const read = readGatewayConfig({ ...least, KEYS_URL: 'http://keys-1:1, http://keys-2:1' });
    expect(read.upstreams.keys.urls).toEqual(['http://keys-1:1', 'http://keys-2:1']);
  });

  it.each([
    'keys',
    ',',
    'http://keys:1,keys',
    'ftp://keys',
    'http://keys:1/base',
    'http://keys:1?a=b',
    'http://user:word@keys:1',
    'http://keys:1:2',
  ])('the URL %s is refused with the name of its setting, without the value', (url) => {
    const read = () => readGatewayConfig({ ...least, KEYS_URL: url });
    expect(read).toThrow(/KEYS_URL is not valid \(must be http:\/\/host:port/);
    expect(read).not.toThrow(/word/);
  });

  it('are all in .env.example, with their descriptions', () => {
    expect(readFileSync(path.join(__dirname, '../.env.example'), 'utf8')).toBe(envExample(configShape));
  });
});
