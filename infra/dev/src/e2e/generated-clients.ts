import { execFile } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { inRepo } from '../dev-config';

const run = promisify(execFile);
const tools = process.env['DRYDOCK_OPENAPI_TOOLS'] ?? '/var/cache/drydock-openapi-tools';
/** Tells whether `.ci/fetch-openapi-tools` has fetched the generators. */
export const hasGenerators = fs.existsSync(path.join(tools, 'complete'));
const bin = (name: string): string => path.join(tools, 'node_modules/.bin', name);
const contract = inRepo('docs/openapi.json');

const settings = `
const baseUrl = process.env.DRYDOCK_URL ?? '';
const key = process.env.DRYDOCK_KEY ?? '';
`;

/** For each generator: its command line, and a program that makes ten calls with what it generates. */
export const generators = {
  'openapi-typescript': {
    generate: (folder: string) => [bin('openapi-typescript'), contract, '-o', path.join(folder, 'contract.ts')],
    program: `
import createClient from 'openapi-fetch';
import type { paths } from './contract';
${settings}
const client = createClient<paths>({ baseUrl, headers: { Authorization: 'Bearer ' + key } });
async function main(): Promise<void> {
  const sites = await client.GET('/v1/sites', { params: { query: { limit: 1 } } });
  const siteId = sites.data?.data[0]?.id ?? '';
  const site = await client.GET('/v1/sites/{siteId}', { params: { path: { siteId } } });
  const etag = site.response.headers.get('etag') ?? '';
  const board = await client.POST('/v1/agency/boards', { body: { name: 'Generated' } });
  const answers = [
    sites,
    site,
    board,
    await client.GET('/v1/me'),
    await client.GET('/v1/sites/{siteId}/backups', { params: { path: { siteId } } }),
    await client.GET('/v1/agency/boards/{boardId}', { params: { path: { boardId: board.data?.id ?? '' } } }),
    await client.GET('/v1/sites/{siteId}', { params: { path: { siteId }, header: { 'If-None-Match': etag } } }),
    await client.PATCH('/v1/sites/{siteId}', { params: { path: { siteId }, header: { 'If-Match': '"stale"' } }, body: { name: 'Shop' } }),
    await client.GET('/v1/databases/catalogue'),
    await client.DELETE('/v1/agency/boards/{boardId}', { params: { path: { boardId: board.data?.id ?? '' } } }),
  ];
  console.log(answers.map(({ response }) => response.status).join());
}
void main();
`,
  },
  '@hey-api/openapi-ts': {
    generate: (folder: string) => [bin('openapi-ts'), '-i', contract, '-o', path.join(folder, 'generated')],
    program: `
import * as api from './generated';
import { client } from './generated/client.gen';
${settings}
client.setConfig({ baseUrl, auth: () => key });
async function main(): Promise<void> {
  const sites = await api.listSites({ query: { limit: 1 } });
  const siteId = sites.data?.data[0]?.id ?? '';
  const site = await api.getSite({ path: { siteId } });
  const etag = site.response?.headers.get('etag') ?? '';
  const board = await api.createBoard({ body: { name: 'Generated' } });
  const boardId = board.data?.id ?? '';
  const answers = [
    sites,
    site,
    board,
    await api.getMe(),
    await api.listSiteBackups({ path: { siteId } }),
    await api.getBoard({ path: { boardId } }),
    await api.getSite({ path: { siteId }, headers: { 'If-None-Match': etag } }),
    await api.updateSite({ path: { siteId }, headers: { 'If-Match': '"stale"' }, body: { name: 'Shop' } }),
    await api.getDatabaseCatalogue(),
    await api.deleteBoard({ path: { boardId } }),
  ];
  console.log(answers.map(({ response }) => response?.status).join());
}
void main();
`,
  },
} as const;

/**
 * Generates a client, compiles it together with the generator's `program`, and runs the program against
 * `env.DRYDOCK_URL`. Resolves with the statuses of the ten answers, separated by commas.
 */
export async function callGenerated(
  generator: keyof typeof generators,
  env: Record<string, string | undefined>,
): Promise<string> {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'drydock-generated-'));
  try {
    fs.symlinkSync(path.join(tools, 'node_modules'), path.join(folder, 'node_modules'));
    const { generate, program } = generators[generator];
    const [file = '', ...words] = generate(folder);
    await run(file, words, { cwd: folder });
    fs.writeFileSync(path.join(folder, 'program.ts'), program);
    const options =
      '--strict --module node16 --target es2022 --lib es2022,dom,dom.iterable --skipLibCheck --types node --outDir out'.split(
        ' ',
      );
    await run(bin('tsc'), [...options, '--typeRoots', inRepo('node_modules/@types'), 'program.ts'], { cwd: folder });
    const { stdout } = await run(process.execPath, [path.join(folder, 'out/program.js')], { cwd: folder, env });
    return stdout.trim();
  } catch (error) {
    // The compiler prints its errors on stdout, so the new error shows the stdout of the failed command.
    throw new Error(`${generator}: ${Reflect.get(Object(error), 'stdout') ?? ''}`, { cause: error });
  } finally {
    fs.rmSync(folder, { recursive: true });
  }
}
