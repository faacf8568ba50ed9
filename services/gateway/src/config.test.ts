import { readFileSync } from 'node:fs';
import path from 'node:path';
import { envExample } from '@drydock/service-kit/testing/env-example';
import { configShape, readGatewayConfig } from './config';

const secret = 'ab'.repeat(32);
const least = { KEYS_URL: 'http://127.0.0.1:1', KEYS_TOKEN_SECRET: secret };

describe('the settings', () => {
  it('need keys alone', () => {
    expect(readGatewayConfig(least)).toMatchObject({
      upstreams: { keys: { url: least.KEYS_URL } },
      redisUrl: undefined,
      rateLimitScale: 1,
    });
    expect(() => readGatewayConfig({})).toThrow(/KEYS_URL is not set/);
  });

  it('take a service with its URL and its secret together', () => {
    const hosting = { ...least, HOSTING_URL: 'http://127.0.0.1:2' };
    expect(() => readGatewayConfig(hosting)).toThrow(/HOSTING_TOKEN_SECRET/);
    expect(readGatewayConfig({ ...hosting, HOSTING_TOKEN_SECRET: secret }).upstreams.hosting).toEqual({
      url: hosting.HOSTING_URL,
      tokenSecret: secret,
    });
  });

  it('all stand in .env.example, with what they are for', () => {
    expect(readFileSync(path.join(__dirname, '../.env.example'), 'utf8')).toBe(envExample(configShape));
  });
});
