import path from 'node:path';
import { isTest, type SourceFile } from './source-files';

interface ImportRule {
  /** The rule, often with its reason. It is the title of the test. */
  reason: string;
  forbids(file: SourceFile, imported: string): boolean;
}

const inPackage = (file: SourceFile, name: string): boolean => file.path.startsWith(`packages/${name}/`);
const named = (file: SourceFile, pattern: RegExp): boolean => pattern.test(path.basename(file.path));
const isOurs = (imported: string): boolean => imported.startsWith('@drydock/');
const isFrom = (imported: string, name: string): boolean => `${imported}/`.startsWith(`@drydock/${name}/`);

/** The part of "Who may import whom" in docs/architecture.md that `turbo boundaries` does not check. */
export const importRules: ImportRule[] = [
  {
    reason: 'contracts import only zod: every process reads them',
    forbids: (file, imported) =>
      inPackage(file, 'contracts') && !isTest(file) && imported !== 'zod' && !imported.startsWith('.'),
  },
  {
    reason:
      'service does not know workflow: a service without long work needs none of it; in workflow only http/ knows how a service answers',
    forbids: (file, imported) =>
      (inPackage(file, 'service') && isFrom(imported, 'workflow')) ||
      (inPackage(file, 'workflow') &&
        /^@drydock\/service\/(?!database|redis|testing|effects|telemetry)/.test(imported) &&
        !isTest(file) &&
        !file.path.startsWith('packages/workflow/src/http/')),
  },
  {
    reason: 'client is for customers: it imports nothing, neither of ours nor of Node',
    forbids: (file, imported) => inPackage(file, 'client') && !isTest(file) && !imported.startsWith('.'),
  },
  {
    reason: 'cli calls Drydock as customers do: of ours it imports the client alone',
    forbids: (file, imported) =>
      inPackage(file, 'cli') && !isTest(file) && isOurs(imported) && imported !== '@drydock/client',
  },
  {
    reason: 'archive knows no site and no bucket, hence nothing of ours',
    forbids: (file, imported) => inPackage(file, 'archive') && !isTest(file) && isOurs(imported),
  },
  {
    reason: 'services never import services, nor an agent but in tests: two processes talk by HTTP',
    forbids: (file, imported) =>
      file.path.startsWith('services/') &&
      (/^@drydock\/(gateway|keys|hosting|compute|agency|databases)\b/.test(imported) ||
        (/^@drydock\/(site|database)-agent\b/.test(imported) && !isTest(file))),
  },
  {
    reason: 'only *.store.ts and compose.ts touch Prisma',
    forbids: (file, imported) =>
      /generated\/prisma|@prisma\/(client|adapter)/.test(imported) &&
      !file.path.startsWith('packages/postgres/src/migrate/') &&
      !isTest(file) &&
      !named(file, /\.store\.ts$|^compose.*\.ts$/),
  },
  {
    reason: 'rules of a service are pure: they import rules, types, contracts and definitions of workflows only',
    forbids: (file, imported) =>
      (file.path.startsWith('services/') || inPackage(file, 'workflow')) &&
      named(file, /\.rules\.ts$/) &&
      !isFrom(imported, 'contracts') &&
      imported !== '@drydock/workflow/definition' &&
      !/^\.{1,2}\/.*\.(rules|types|states)$|^\.{1,2}\/[a-z-]*(rules|types|states)$/.test(imported),
  },
  {
    reason: 'only compose.ts picks a driver',
    forbids: (file, imported) =>
      file.path.startsWith('services/') &&
      /providers\/.+\.(local|ssh|s3|hetzner|proxmox|qemu|vendor|twentyi)$/.test(imported) &&
      !isTest(file) &&
      !named(file, /^compose.*\.ts$/),
  },
  {
    reason: 'testing is for tests',
    forbids: (file, imported) => isFrom(imported, 'testing') && !isTest(file),
  },
  {
    reason: 'reach into a package by its exports, not by a path',
    forbids: (_file, imported) => /(^|\/)\.\.\/\.\.\/\.\.\/(packages|services)\//.test(imported),
  },
];
