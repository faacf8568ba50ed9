import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fenceViolations, providerEntries, readLedger, repetitionViolations } from './ledger';

const file = path.join(mkdtempSync(path.join(tmpdir(), 'drydock-ledger-')), 'ledger.ndjson');
const line = (fence: string, more: object = {}): string =>
  JSON.stringify({ time: 't', resource: 'box', op: 'swap', fence, workflow_id: 'w', outcome: 'accepted', ...more });
const ledger = (...lines: string[]) => {
  writeFileSync(file, `${lines.join('\n')}\n`);
  return readLedger(file);
};

describe('the ledger', () => {
  it('leaves out a last line that was cut off, and refuses any other bad one', () => {
    writeFileSync(file, `${line('1')}\n{"time": "t", "reso`);
    expect(readLedger(file)).toHaveLength(1);
    expect(() => ledger('{"op": 1}')).toThrow('Invalid input');
  });

  it('compares fences as numbers, for each resource, and minds no refused effect', () => {
    expect(
      fenceViolations(
        ledger(line('9'), line('10'), line('3', { resource: 'other' }), line('2', { outcome: 'refused' })),
      ),
    ).toEqual([]);
    expect(fenceViolations(ledger(line('10'), line('9')))).toEqual(['swap of box accepted with fence 9 after 10']);
  });

  it('lets an effect be applied again with the same outcome only', () => {
    expect(
      repetitionViolations(
        ledger(line('1', { digest: 'a' }), line('2', { digest: 'a' }), line('3', { digest: 'b', workflow_id: 'v' })),
      ),
    ).toEqual([]);
    expect(repetitionViolations(ledger(line('1', { digest: 'a' }), line('2', { digest: 'b' })))).toHaveLength(1);
    expect(
      repetitionViolations(ledger(line('1', { digest: 'a', detail: 'x' }), line('2', { digest: 'b', detail: 'y' }))),
    ).toEqual([]);
  });

  it('tells a second send to a provider from the first', () => {
    const send = { time: 't', resource: '7', op: 'rebuild_server', detail: 'image', action_id: '1' };
    expect(repetitionViolations(providerEntries([send, { ...send, resource: '8', action_id: '2' }]))).toEqual([]);
    expect(repetitionViolations(providerEntries([send, { ...send, action_id: '2' }]))).toHaveLength(1);
  });
});
