import { networkInterfaces } from 'node:os';
import { type NameServers, Outgoing, OutgoingPolicy } from './outgoing';

const names: Record<string, string[]> = {
  'inner.example': ['10.0.0.7'],
  'metadata.example': ['169.254.169.254'],
  'loopback.example': ['127.0.0.1'],
  'mixed.example': ['127.0.0.1', '93.184.215.14'],
};

function resolverOf(v6: string[] = []): NameServers {
  const missing = (): Promise<never> => Promise.reject(new Error('ENOTFOUND'));
  return {
    resolve4: (name) => (names[name] ? Promise.resolve(names[name]) : missing()),
    resolve6: () => (v6.length > 0 ? Promise.resolve(v6) : missing()),
  };
}

test('a name leads to public addresses only, whatever else it has', async () => {
  const policy = new OutgoingPolicy([], resolverOf(['::1', 'fe80::1', '::ffff:10.0.0.7']));
  for (const name of ['inner.example', 'metadata.example', 'loopback.example']) {
    await expect(policy.resolve(name)).rejects.toMatchObject({ code: 'EACCES' });
  }
  expect(await policy.resolve('mixed.example')).toEqual(['93.184.215.14']);
  await expect(new OutgoingPolicy([], resolverOf()).resolve('nothing.example')).rejects.toMatchObject({
    code: 'ENOTFOUND',
  });
});

test('a connection is permitted by the address that it goes to, also if a name was given', async () => {
  const outgoing = new Outgoing(new OutgoingPolicy([], resolverOf()), (go) => go());
  for (const host of ['loopback.example', '127.0.0.1', '::1', '0.0.0.0', '::', '10.0.0.7', 'fe80::1%eth0']) {
    await expect(outgoing.dial(host, 80)).rejects.toMatchObject({
      code: expect.stringMatching(/^(EACCES|ENOTFOUND)$/),
    });
  }
  await expect(outgoing.dial('127.0.0.1', 70_000)).rejects.toMatchObject({ code: 'EINVAL' });
});

test('a range that the operator allows is reached, and nothing beside it', () => {
  const policy = new OutgoingPolicy(['10.1.0.0/16', 'fd12::/48']);
  const asked = ['10.1.2.3', '10.2.0.1', 'fd12::5', 'fd13::5', '127.0.0.1', '1.1.1.1'];
  expect(asked.map((address) => policy.permits(address))).toEqual([true, false, true, false, false, true]);
});

test('the machine is not reached by its own addresses', () => {
  const policy = new OutgoingPolicy([]);
  const own = Object.values(networkInterfaces()).flatMap((known) => known?.map(({ address }) => address) ?? []);
  expect(own.filter((address) => policy.permits(address))).toEqual([]);
});
