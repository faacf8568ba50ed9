/**
 * @processes
 */
import { execFile, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { parse } from 'yaml';
import { z } from 'zod';
import { inRepo } from './dev-config';
import { topology } from './topology';

const rulesFile = inRepo('infra/observability/rules.yml');
const alertSchema = z.object({
  alert: z.string(),
  annotations: z.object({ summary: z.string(), runbook: z.string() }),
  labels: z.object({ severity: z.enum(['page', 'ticket']) }),
});
const ruleSchema = z.union([alertSchema, z.object({ record: z.string() })]);
const rules = z
  .object({ groups: z.array(z.object({ rules: z.array(ruleSchema) })) })
  .parse(parse(readFileSync(rulesFile, 'utf8')))
  .groups.flatMap((group) => group.rules);
const alerts = rules.flatMap((rule) => ('alert' in rule ? [rule] : []));

test('each alert leads to a page that names it', () => {
  expect(alerts.length).toBeGreaterThan(9);
  for (const { alert, annotations } of alerts) {
    expect([
      alert,
      existsSync(inRepo(annotations.runbook)) && readFileSync(inRepo(annotations.runbook), 'utf8').includes(alert),
    ]).toEqual([alert, true]);
  }
});

test('the dashboards are those that dashboards.mjs makes', async () => {
  const made = mkdtempSync(path.join(tmpdir(), 'drydock-dashboards-'));
  await promisify(execFile)(process.execPath, [inRepo('infra/observability/dashboards.mjs'), made]);
  const contents = (folder: string) =>
    readdirSync(folder)
      .sort()
      .map((name) => [name, readFileSync(path.join(folder, name), 'utf8')]);
  expect(contents(inRepo('infra/observability/grafana'))).toEqual(contents(made));
  rmSync(made, { recursive: true });
});

const itWith = spawnSync('promtool', ['--version']).status === 0 ? test : test.skip;
itWith(
  'alerts are silent where all is well and call where it is not (promtool of Debian’s package prometheus)',
  async () => {
    const { stdout } = await promisify(execFile)('promtool', [
      'test',
      'rules',
      inRepo('infra/observability/rules.test.yml'),
    ]);
    expect(stdout).toContain('SUCCESS');
    const tested = readFileSync(inRepo('infra/observability/rules.test.yml'), 'utf8');
    expect(alerts.map(({ alert }) => alert).filter((alert) => !tested.includes(`"${alert}"`))).toEqual([]);
    // The case "all is well" of the rules' test must have a series `up` for each program.
    const programs = topology.filter(({ run }) => 'entry' in run).map(({ name }) => name);
    expect(programs.filter((name) => !tested.includes(`'up{process="${name}"}'`))).toEqual([]);
  },
);
