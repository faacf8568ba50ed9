// Writes a file for every secret of docker-compose.yml to FOLDER (by default infra/docker/secrets). The secrets are
// derived from one master key.
//   node infra/docker/derive-secrets.mjs [FOLDER]
//     creates a master key and prints it once.
//   DRYDOCK_MASTER_KEY=<64 hex digits> node infra/docker/derive-secrets.mjs [FOLDER]
//     writes the same secrets again.
//   DRYDOCK_MASTER_KEY=<current>,<other> node infra/docker/derive-secrets.mjs [FOLDER]
//     is for a rotation of the key (docs/operating.md). A process that accepts a secret gets both values of the secret,
//     and a process that uses the secret gets the current value.
// POSTGRES_ADDRESS and REDIS_ADDRESS (host:port) say where these servers are, if they are not the containers of
// docker-compose.yml. ADMIN_DATABASE_URL is the URL of the superuser of a Postgres outside of docker-compose.yml. A
// later run without one of these variables keeps the value of an earlier run. Some secrets come from the operator, such
// as the key of a bucket or the token of a cloud. For each of these the script creates an empty file. It never changes
// the file afterwards.
import { createHash, hkdfSync, randomBytes } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const usage = `usage: [DRYDOCK_MASTER_KEY=HEX] node infra/docker/derive-secrets.mjs [FOLDER]
  Writes a file for every secret to FOLDER (infra/docker/secrets). Without a master key one is made, and printed once.`;
const { given: words, isHelp } = readArguments();
function readArguments() {
  try {
    const { positionals, values } = parseArgs({
      options: { help: { type: 'boolean', short: 'h' } },
      allowPositionals: true,
    });
    if (positionals.length > 1) throw new Error(`Unexpected argument '${positionals[1]}'`);
    return { given: positionals, isHelp: values.help };
  } catch (error) {
    console.error(`${error.message}\n${usage}`);
    process.exit(2);
  }
}
if (isHelp) {
  console.log(usage);
  process.exit(0);
}

const here = path.dirname(fileURLToPath(import.meta.url));
const folder = path.resolve(words[0] ?? path.join(here, 'secrets'));
const given = process.env.DRYDOCK_MASTER_KEY || undefined;
function refuse(why) {
  console.error(why);
  process.exit(1);
}
if (given === undefined && fs.existsSync(folder)) {
  refuse(
    `${folder} exists. Set DRYDOCK_MASTER_KEY to the key that it was made with: another key would lock you out of your data.`,
  );
}
if (given !== undefined && !/^[0-9a-f]{64}(?:,[0-9a-f]{64})*$/i.test(given)) {
  refuse(
    'DRYDOCK_MASTER_KEY must be 64 hexadecimal digits (32 bytes), or several of these with commas between. Leave it out to have one made.',
  );
}
const masters = given?.split(',') ?? [randomBytes(32).toString('hex')];
const deriveFrom = (master, label) =>
  Buffer.from(hkdfSync('sha256', Buffer.from(master, 'hex'), '', label, 32)).toString('hex');
/**
 * Derives the text for a placeholder of secrets.json. `<label>` becomes the secret that the current master key gives.
 * `<rotated label>` becomes the secrets of all master keys: `one,other`, or `>one >other` in the configuration of
 * Redis. `<fingerprint label>` becomes the part of the Postgres login's name that depends on the current secret.
 */
function derive(label, kind, sign = '') {
  const values = masters.map((master) => deriveFrom(master, label));
  if (kind === 'rotated') return sign + values.join(sign === '' ? ',' : ` ${sign}`);
  return sign + (kind === 'fingerprint' ? createHash('sha256').update(values[0]).digest('hex').slice(0, 8) : values[0]);
}

/** Returns the text that an earlier run wrote to the file, or '' if the file does not exist. */
function writtenBefore(name) {
  const file = path.join(folder, name);
  return fs.existsSync(file) ? fs.readFileSync(file, 'utf8').trim() : '';
}
/** Returns the host and port in the URL that an earlier run wrote to the file. */
const addressBefore = (name) => /@([^@/]+)(?:\/[^/]*)?$/.exec(writtenBefore(name))?.[1];
/**
 * Returns the superuser's URL of an earlier run if an operator gave it, and otherwise ''. An operator gave it if its
 * password is derived from none of the master keys.
 */
function adminBefore() {
  const url = writtenBefore(adminFile);
  const derived = masters.map((master) => deriveFrom(master, 'postgres:admin'));
  return derived.some((password) => url.includes(password)) ? '' : url;
}

const adminFile = 'create-databases.ADMIN_DATABASE_URL';
/** The values that an operator may give in place of derived ones, by file. */
const brought = { [adminFile]: process.env.ADMIN_DATABASE_URL || adminBefore() };
/** The addresses that an operator may give. The key is the text in secrets.json that the address replaces. */
const addresses = {
  '@postgres:5432/': process.env.POSTGRES_ADDRESS || addressBefore('keys.DATABASE_URL'),
  '@redis:6379': process.env.REDIS_ADDRESS || addressBefore('redis.URL'),
};
function placed(template) {
  let text = template;
  for (const [usual, address] of Object.entries(addresses)) {
    if (address) text = text.replaceAll(usual, `@${address}${usual.endsWith('/') ? '/' : ''}`);
  }
  return text;
}

// Only this user can enter the folder. Every user can read the files in it, because Docker mounts them into containers
// whose users differ from this one.
fs.mkdirSync(folder, { recursive: true, mode: 0o700 });
fs.chmodSync(folder, 0o700);
const templates = JSON.parse(fs.readFileSync(path.join(here, 'secrets.json'), 'utf8'));
for (const [name, template] of Object.entries(templates)) {
  const file = path.join(folder, name);
  if (template === '' && fs.existsSync(file)) continue;
  // The file is written in place. A running container would keep reading a replaced file.
  if (fs.existsSync(file)) fs.chmodSync(file, 0o644);
  fs.writeFileSync(
    file,
    brought[name] ||
      placed(template).replace(/(>)?<(?:(rotated|fingerprint) )?([^>]+)>/g, (_match, sign, kind, label) =>
        derive(label, kind, sign),
      ),
  );
  fs.chmodSync(file, template === '' ? 0o644 : 0o444);
}
console.log(`Written to ${folder}`);
if (given === undefined) {
  console.log(
    `Master key: ${masters[0]}\nKeep it secret, backed up and off this machine: without it no backup can be read.`,
  );
}
