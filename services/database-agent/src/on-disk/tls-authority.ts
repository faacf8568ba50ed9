import { createHash, randomBytes, webcrypto } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import { isIP } from 'node:net';
import path from 'node:path';
import { readIfThere, writeDurably } from '@drydock/process';
import * as x509 from '@peculiar/x509';

const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;
const dayMs = 24 * 3600 * 1000;
const authorityDays = 3650;
const serverDays = 825;
/** The server's certificate is renewed when the agent starts if it expires within this many days. */
const renewDays = 90;

/** The certificate that an instance shows its customers, and the authority that signed it, in PEM. */
export interface TlsMaterial {
  authority: string;
  certificate: string;
  key: string;
}

const pemOfKey = async (key: webcrypto.CryptoKey): Promise<string> => {
  const der = Buffer.from(await webcrypto.subtle.exportKey('pkcs8', key)).toString('base64');
  return `-----BEGIN PRIVATE KEY-----\n${der.replace(/(.{64})/g, '$1\n').trim()}\n-----END PRIVATE KEY-----\n`;
};

const keyOfPem = (pem: string): Promise<webcrypto.CryptoKey> => {
  const der = Buffer.from(pem.replace(/-----[A-Z ]+-----|\s/g, ''), 'base64');
  return webcrypto.subtle.importKey('pkcs8', der, algorithm, true, ['sign']);
};

const makeKeys = (): Promise<webcrypto.CryptoKeyPair> =>
  webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
const validFor = (now: Date, days: number) => ({
  notBefore: new Date(now.getTime() - dayMs),
  notAfter: new Date(now.getTime() + days * dayMs),
});
/** A serial number. It begins with 01, because the standard requires a positive number. */
const serialNumber = (): string => `01${randomBytes(15).toString('hex')}`;

async function makeAuthority(now: Date, label: string): Promise<{ certificate: string; key: string }> {
  const keys = await makeKeys();
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    serialNumber: serialNumber(),
    name: `CN=Drydock database authority ${label}`,
    ...validFor(now, authorityDays),
    signingAlgorithm: algorithm,
    keys,
    extensions: [
      new x509.BasicConstraintsExtension(true, 0, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign, true),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
  return { certificate: certificate.toString('pem'), key: await pemOfKey(keys.privateKey) };
}

async function makeServer(
  now: Date,
  names: readonly string[],
  authority: { certificate: string; key: string },
): Promise<{ certificate: string; key: string }> {
  const keys = await makeKeys();
  const issuer = new x509.X509Certificate(authority.certificate);
  const alternatives = names.map((name): x509.JsonGeneralName => ({ type: isIP(name) ? 'ip' : 'dns', value: name }));
  const certificate = await x509.X509CertificateGenerator.create({
    serialNumber: serialNumber(),
    subject: `CN=${names[0] ?? 'localhost'}`,
    issuer: issuer.subject,
    ...validFor(now, serverDays),
    publicKey: keys.publicKey,
    signingKey: await keyOfPem(authority.key),
    signingAlgorithm: algorithm,
    extensions: [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
      new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth]),
      new x509.SubjectAlternativeNameExtension(alternatives),
      await x509.AuthorityKeyIdentifierExtension.create(issuer.publicKey),
    ],
  });
  return { certificate: certificate.toString('pem'), key: await pemOfKey(keys.privateKey) };
}

/**
 * Returns the stored certificate and its key. If one is missing, or `isGood` refuses the certificate, new ones are made
 * and stored. The certificate is written last, so that a new one never exists without its key.
 */
async function keepPair(
  folder: string,
  name: string,
  make: () => Promise<{ certificate: string; key: string }>,
  isGood: (pem: string) => boolean,
) {
  const [certificateFile, keyFile] = [path.join(folder, `${name}.crt`), path.join(folder, `${name}.key`)];
  const [certificate, key] = [await readIfThere(certificateFile), await readIfThere(keyFile)];
  if (certificate !== null && key !== null && isGood(certificate)) return { certificate, key };
  const made = await make();
  await writeDurably(keyFile, made.key);
  await writeDurably(certificateFile, made.certificate);
  return made;
}

/**
 * Opens the private authority of this machine, and the certificate that it has signed for the names that customers use.
 * The authority is made once, and its key never leaves the folder. All instances get the same certificate with its key.
 * A library makes the certificates, because Node cannot.
 */
export async function openTlsAuthority(
  databasesDir: string,
  names: readonly string[],
  now: Date,
): Promise<TlsMaterial> {
  x509.cryptoProvider.set(webcrypto);
  const folder = path.join(databasesDir, 'tls');
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const label = createHash('sha256').update(path.resolve(databasesDir)).digest('hex').slice(0, 8);
  const authority = await keepPair(
    folder,
    'authority',
    () => makeAuthority(now, label),
    () => true,
  );
  const isGood = (pem: string): boolean => {
    const parsed = new x509.X509Certificate(pem);
    const covered =
      parsed.getExtension(x509.SubjectAlternativeNameExtension)?.names.items.map(({ value }) => value) ?? [];
    const isFresh = parsed.notAfter.getTime() - now.getTime() > renewDays * dayMs;
    return (
      isFresh &&
      names.every((name) => covered.includes(name)) &&
      parsed.issuer === new x509.X509Certificate(authority.certificate).subject
    );
  };
  const server = await keepPair(folder, 'server', () => makeServer(now, names, authority), isGood);
  return { authority: authority.certificate, certificate: server.certificate, key: server.key };
}
