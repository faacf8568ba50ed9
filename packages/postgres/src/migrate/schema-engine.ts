import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { bindMigrationAwareSqlAdapterFactory } from '@prisma/driver-adapter-utils';
import { MigrationAdapter } from './migration-adapter';

/**
 * The part of Prisma's schema engine that we use. The full type is in @prisma/schema-engine-wasm, which is ESM only.
 */
export interface SchemaEngine {
  applyMigrations(input: unknown): Promise<{ appliedMigrationNames: string[] }>;
  /** `exitCode` 2 means that there is a difference. `stdout` is the SQL. */
  diff(input: unknown): Promise<{ exitCode: number; stdout: string | null }>;
}

interface EngineGlue {
  SchemaEngine: { new: (options: unknown, onLog: (line: string) => void, adapter: unknown) => Promise<SchemaEngine> };
  __wbg_set_wasm: (exports: unknown) => void;
}

/** Node has WebAssembly, but the es2023 library of TypeScript does not declare it. */
declare const WebAssembly: {
  instantiate: (
    bytes: Uint8Array,
    imports: Record<string, unknown>,
  ) => Promise<{ instance: { exports: { __wbindgen_start: () => void } } }>;
};
declare global {
  var PRISMA_WASM_PANIC_REGISTRY: { set_message: (message: string) => void } | undefined;
}

/** One instance for each process, because the generated glue keeps state in its module. */
let loading: Promise<EngineGlue> | undefined;

/**
 * Prisma's engine on one database, with the schema files that it shall compare or apply. `asOne` returns the query that
 * is sent for a script. By default that is the script itself.
 */
export async function openSchemaEngine(
  databaseUrl: string,
  schemaFiles: [string, string][],
  asOne: (script: string) => string = (script) => script,
): Promise<SchemaEngine> {
  loading ??= loadGlue();
  const glue = await loading;
  return glue.SchemaEngine.new(
    { datamodels: schemaFiles },
    () => undefined,
    bindMigrationAwareSqlAdapterFactory(new MigrationAdapter(databaseUrl, asOne)),
  );
}

/** Does what the package's own entry does with `import … from "./x.wasm"`, which Node 20 does not support. */
async function loadGlue(): Promise<EngineGlue> {
  const folder = path.dirname(createRequire(__filename).resolve('@prisma/schema-engine-wasm/schema_engine_bg'));
  globalThis.PRISMA_WASM_PANIC_REGISTRY ??= {
    set_message: (message) => process.stderr.write(`schema engine panic: ${message}\n`),
  };
  const glue: EngineGlue = await import(pathToFileURL(path.join(folder, 'schema_engine_bg.js')).href);
  const bytes = fs.readFileSync(path.join(folder, 'schema_engine_bg.wasm'));
  const { instance } = await WebAssembly.instantiate(bytes, { './schema_engine_bg.js': glue });
  glue.__wbg_set_wasm(instance.exports);
  instance.exports.__wbindgen_start();
  return glue;
}
