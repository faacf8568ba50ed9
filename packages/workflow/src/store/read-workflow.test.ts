import { viewFailure } from './read-workflow';

const bytesOf = (value: unknown): number => Buffer.byteLength(JSON.stringify(value));
const finding = (detail: string) => ({ level: 'ERROR', code: 'statement_refused', detail });
const failed = (findings: unknown[], detail?: string) =>
  viewFailure({ code: 'database_content_refused', extra: { findings }, ...(detail !== undefined && { detail }) }, 'id');

test('a failure is shown in at most 60 kB, however large its stored texts are and however many findings it has', () => {
  const texts = ['\u0001', '😀', 'a😀', ''].map((text) => `${text.slice(0, -2)}${text.slice(-2).repeat(100_000)}`);
  for (const text of texts) {
    const shown = failed(
      Array.from({ length: text === '' ? 50_000 : 50 }, () => finding(text)),
      text,
    );
    expect(bytesOf(shown)).toBeLessThan(60_000);
    // Neither Postgres nor keys takes half of a surrogate pair.
    expect(JSON.stringify(shown)).not.toMatch(/\\ud[89a-f]/i);
  }
});

test('a failure of an ordinary size is shown whole, and one with too many findings says how many are left out', () => {
  const few = [finding('one'), finding('x'.repeat(900))];
  expect(failed(few, 'why')).toMatchObject({ detail: 'why', findings: few });
  const many = Array.from({ length: 500 }, (_, index) => finding(`${index} ${'x'.repeat(400)}`));
  const { findings } = failed(many) as unknown as { findings: ReturnType<typeof finding>[] };
  const kept = findings.slice(0, -1);
  expect([kept, kept.length > 50]).toEqual([many.slice(0, kept.length), true]);
  expect(findings.at(-1)).toMatchObject({ level: 'INFO', code: 'more_findings' });
  expect(findings.at(-1)?.detail).toContain(`${500 - kept.length} more`);
});
