import { defineConfig } from 'prisma/config';

export default defineConfig({
  schema: 'prisma/schema',
  migrations: { path: 'prisma/migrations' },
  // `env()` would throw without the variable, and a fresh clone could not generate its client.
  datasource: { url: process.env['DATABASE_URL'] ?? '' },
});
