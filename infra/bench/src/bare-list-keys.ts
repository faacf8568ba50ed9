// The peer of the benchmark `list-keys`: a process with only Express and Prisma. It runs the query of the keys service.
import path from 'node:path';
import express from 'express';

interface Store {
  listSubtree(
    tx: unknown,
    scope: { orgId: string; mode: 'live' },
    page: { after: null; take: number },
  ): Promise<unknown[]>;
}
interface DatabaseStore {
  openDatabase(url: string, limits: { max: number; applicationName: string }): { pool: unknown };
}

const root = path.resolve(__dirname, '../../..');
const { listSubtree }: Store = require(path.join(root, 'services/keys/dist/api-keys/api-key.store.js'));
const { openDatabase }: DatabaseStore = require(path.join(root, 'services/keys/dist/context/database.store.js'));

const { pool } = openDatabase(process.env['DATABASE_URL'] ?? '', { max: 10, applicationName: 'bench-bare' });
const orgId = process.env['ORG_ID'] ?? '';
const app = express();
app.get('/', async (_request, response) => {
  response.json({ data: await listSubtree(pool, { orgId, mode: 'live' }, { after: null, take: 51 }) });
});
app.listen(Number(process.env['PORT']), '127.0.0.1');
