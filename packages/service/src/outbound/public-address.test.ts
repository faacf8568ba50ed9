import { authorityOf, isEndpointAllowed, isPublicAddress } from './guarded-agent';

describe('a customer’s endpoint', () => {
  it.each([
    '0.0.0.0',
    '10.1.2.3',
    '100.64.0.1',
    '127.0.0.1',
    '127.8.8.8',
    '169.254.169.254',
    '172.16.0.1',
    '172.31.255.255',
    '192.0.0.8',
    '192.168.1.1',
    '198.19.0.1',
    '203.0.113.7',
    '224.0.0.1',
    '255.255.255.255',
    '::',
    '::1',
    '::ffff:127.0.0.1',
    '::ffff:8.8.8.8',
    '64:ff9b::7f00:1',
    'fc00::1',
    'fd00:ec2::254',
    'fe80::1',
    'fe80::1%eth0',
    'ff02::1',
    '2001::1',
    '2001:db8::1',
    '2002:7f00:1::',
    '3fff::1',
    '127.1',
    'localhost',
    '',
  ])('is never at %j', (address) => {
    expect(isPublicAddress(address)).toBe(false);
  });

  it.each([
    '1.1.1.1',
    '52.219.170.1',
    '172.15.255.255',
    '172.32.0.1',
    '100.63.255.255',
    '2606:4700::1111',
    '2a05:d050::1',
  ])('may be at %s', (address) => {
    expect(isPublicAddress(address)).toBe(true);
  });

  const none = new Set<string>();
  it.each([
    'http://storage.example.com',
    'https://2130706433',
    'https://0177.0.0.1',
    'https://0x7f.1',
    'https://127.1',
    'https://[::1]',
    'https://[::ffff:169.254.169.254]',
    'https://10.0.0.5:9000',
  ])('is refused by its URL alone: %s', (text) => {
    expect(isEndpointAllowed(new URL(text).origin, none)).toBe(false);
  });

  it('needs https and a name or public address, unless the installation allows it by host and port', () => {
    expect(isEndpointAllowed('https://s3.eu-central-1.amazonaws.com', none)).toBe(true);
    expect(isEndpointAllowed('https://1.1.1.1:9000', none)).toBe(true);
    const allowed = new Set(['127.0.0.1:9000']);
    expect(isEndpointAllowed('http://127.0.0.1:9000', allowed)).toBe(true);
    expect(isEndpointAllowed('http://127.0.0.1:9001', allowed)).toBe(false);
    expect(isEndpointAllowed('http://127.0.0.1', allowed)).toBe(false);
  });

  it('has its port written out', () => {
    expect(['https://a.example', 'http://a.example', 'https://a.example:8443'].map(authorityOf)).toEqual([
      'a.example:443',
      'a.example:80',
      'a.example:8443',
    ]);
  });
});
