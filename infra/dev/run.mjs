// The way in, for `npm start`, `npm test` and the rest, on a machine that has only Node 20 and npm: installs with the pinned pnpm, builds, and hands over
// to the compiled program of the command. Plain JavaScript without dependencies, because it runs before anything is installed.
import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
process.chdir(root);

/** The program behind each command; `needs` is what must be done before it. */
const commands = {
  start: { program: 'infra/dev/dist/start.js', needs: ['install', 'build'] },
  test: { program: 'infra/dev/dist/run-tests.js', needs: ['install', 'build'] },
  check: { program: 'infra/dev/dist/run-tests.js', args: ['--checks-only'], needs: ['install', 'build'] },
  build: { needs: ['install', 'build'] },
  bench: { program: 'infra/bench/dist/bench.js', needs: ['install', 'build'] },
  chaos: { program: 'infra/dev/dist/run-tests.js', args: ['--chaos'], needs: ['install', 'build'] },
  'dev:call': { program: 'infra/dev/dist/dev-call.js', needs: [] },
  'migrate:new': { program: 'infra/dev/dist/migrate-new.js', needs: ['install', 'build'] },
  errors: { program: 'services/gateway/dist/write-errors.js', needs: ['install', 'build'] },
  openapi: { program: 'services/gateway/dist/write-openapi.js', needs: ['install', 'build'] },
};

const [major, minor] = process.versions.node.split('.').map(Number);
if (major < 20 || (major === 20 && minor < 19)) {
  console.error(`Drydock needs Node 20.19 or newer; this is ${process.versions.node}.`);
  process.exit(1);
}

const pnpmSpec = JSON.parse(fs.readFileSync('package.json', 'utf8')).packageManager;
const env = {
  ...process.env,
  PATH: `${path.join(root, 'node_modules/.bin')}${path.delimiter}${process.env.PATH}`,
  TURBO_TELEMETRY_DISABLED: '1',
  TURBO_NO_UPDATE_NOTIFIER: '1',
  DO_NOT_TRACK: '1',
  CHECKPOINT_DISABLE: '1',
  PRISMA_HIDE_UPDATE_MESSAGE: '1',
  COREPACK_ENABLE_DOWNLOAD_PROMPT: '0',
  // Any executable stops Prisma's CLI from fetching its schema engine, which generate, validate and format never run.
  PRISMA_SCHEMA_ENGINE_BINARY: process.env.PRISMA_SCHEMA_ENGINE_BINARY ?? process.execPath,
};
// npm hands its own settings down as npm_config_*; pnpm would take them for its own.
for (const name of Object.keys(env)) if (/^npm_config_/i.test(name)) delete env[name];

/** Runs to the end in silence; on failure prints what it said and ends with its code. */
function must(bin, args, extra = {}) {
  const result = spawnSync(bin, args, { env: { ...env, ...extra }, encoding: 'utf8', maxBuffer: 64 << 20 });
  if (result.status === 0) return result.stdout;
  process.stderr.write(`${bin} ${args.join(' ')} failed\n${result.error?.message ?? ''}${result.stdout ?? ''}${result.stderr ?? ''}\n`);
  process.exit(result.status ?? 1);
}

/** Everything that an install depends on, as one digest. */
function installDigest() {
  const manifests = ['packages', 'services', 'infra'].flatMap((folder) =>
    fs
      .readdirSync(folder)
      .map((name) => `${folder}/${name}/package.json`)
      .filter((file) => fs.existsSync(file)),
  );
  const hash = createHash('sha256').update(`${process.platform}-${process.arch}-${process.versions.modules}-${pnpmSpec}`);
  for (const file of ['pnpm-lock.yaml', 'pnpm-workspace.yaml', 'package.json', ...manifests]) hash.update(fs.readFileSync(file));
  return hash.digest('hex');
}

/** The pinned pnpm: our own copy once installed, one on the PATH of the same major, else by npx. */
function findPnpm() {
  const wanted = pnpmSpec.split('@')[1].split('.')[0];
  const fits = (bin) => {
    const result = spawnSync(bin, ['--version'], { env, encoding: 'utf8' });
    return result.status === 0 && result.stdout.trim().split('.')[0] === wanted;
  };
  const local = path.join(root, 'node_modules/.bin/pnpm');
  if (fs.existsSync(local) && fits(local)) return [local];
  return fits('pnpm') ? ['pnpm'] : ['npx', '--yes', '--prefer-offline', '--loglevel=error', pnpmSpec];
}

const tasks = {
  install() {
    const stamp = 'node_modules/.install-stamp';
    const digest = installDigest();
    if (fs.existsSync(stamp) && fs.readFileSync(stamp, 'utf8') === digest) return;
    const started = Date.now();
    const [bin, ...first] = findPnpm();
    process.stderr.write('Installing dependencies …\n');
    must(bin, [...first, 'install', '--frozen-lockfile', '--prefer-offline', '--reporter=append-only'], { CI: '1' });
    fs.writeFileSync(stamp, digest);
    process.stderr.write(`Dependencies installed in ${((Date.now() - started) / 1000).toFixed(1)} s\n`);
  },
  build() {
    const started = Date.now();
    must('turbo', ['run', 'build', '--output-logs=errors-only', '--log-prefix=none', '--log-order=grouped']);
    const seconds = (Date.now() - started) / 1000;
    if (seconds > 3) process.stderr.write(`Built in ${seconds.toFixed(1)} s\n`);
  },
};

const [name = 'start', ...rest] = process.argv.slice(2);
const command = Object.hasOwn(commands, name) ? commands[name] : undefined;
if (command === undefined) {
  console.error(`There is no command "${name}". There are: ${Object.keys(commands).join(', ')}.`);
  process.exit(1);
}
for (const need of command.needs) tasks[need]();
if (command.program !== undefined) {
  const child = spawn(process.execPath, ['--enable-source-maps', command.program, ...(command.args ?? []), ...rest], {
    env,
    stdio: 'inherit',
  });
  // The terminal sends Ctrl-C to the whole group; this process only has to outlive the child's orderly end.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
  child.on('exit', (code, signal) => process.exit(code ?? (signal === null ? 0 : 1)));
}
