import { createHmac } from 'node:crypto';
import { Resolver } from 'node:dns/promises';
import http from 'node:http';
import https from 'node:https';
import { timeLimit } from '@drydock/process';
import { createGuardedAgents, type ResolveAll } from '@drydock/service/outbound';
import type { CurrentFirst } from '@drydock/service/process';

/** The two ways to prove control of a domain: a TXT record, or a file at a URL. One is enough. */
interface DomainProof {
  dns: { type: 'TXT'; name: string; value: string };
  http: { url: string; content: string };
}

/** An organisation's claim to a domain. Each claim has its own proof. */
interface DomainClaim {
  orgId: string;
  domain: string;
}

/** Checks whether an organisation controls a domain, and changes nothing. */
export interface DomainProofs {
  /** Whether a claim in this mode must be proven. If not, a domain belongs to the organisation that names it first. */
  isRequired(mode: 'live' | 'sandbox'): boolean;
  proofOf(claim: DomainClaim): DomainProof;
  /**
   * Whether the domain shows the proof of the claim now. False also if neither the name server nor the web server of
   * the domain answers.
   */
  isShown(claim: DomainClaim): Promise<boolean>;
}

export interface DomainProofOptions {
  /** The first key makes new proofs. Proofs made with any of the keys are accepted. */
  keys: CurrentFirst<Buffer>;
  isRequired: boolean;
  /** `address:port` of the name servers to ask. If the list is empty, the system's name servers are asked. */
  nameServers: readonly string[];
  /** The `host:port`s that may have a private address. Only tests set this. */
  allowed?: ReadonlySet<string>;
  resolve?: ResolveAll;
}

const valueBytes = 24;
const answerMs = 5_000;
const contentBytesMax = 1_024;
const filePath = '/.well-known/drydock-verification.txt';

export function createDomainProofs({ keys, isRequired, nameServers, ...guard }: DomainProofOptions): DomainProofs {
  const resolver = new Resolver({ timeout: 2_000, tries: 2 });
  if (nameServers.length > 0) resolver.setServers(nameServers);
  const proofBy = (key: Buffer, { orgId, domain }: DomainClaim): DomainProof => {
    const mac = createHmac('sha256', key)
      .update(`${orgId}\n${domain}`)
      .digest()
      .subarray(0, valueBytes)
      .toString('base64url');
    const value = `drydock-verification=${mac}`;
    return {
      dns: { type: 'TXT', name: `_drydock.${domain}`, value },
      http: { url: `http://${domain}${filePath}`, content: value },
    };
  };
  const isInDns = async ({ name }: DomainProof['dns'], values: ReadonlySet<string>): Promise<boolean> => {
    const records = await resolver.resolveTxt(name).catch(() => []);
    return records.some((parts) => values.has(parts.join('')));
  };
  const isInFile = async ({ url }: DomainProof['http'], values: ReadonlySet<string>): Promise<boolean> => {
    const asked = [url, url.replace(/^http:/, 'https:')].map((address) =>
      readFirstBytes(address, guard).catch(() => ''),
    );
    return (await Promise.all(asked)).some((text) => values.has(text.trim()));
  };
  return {
    isRequired: (mode) => isRequired && mode === 'live',
    proofOf: (claim) => proofBy(keys[0], claim),
    isShown: async (claim) => {
      const { dns, http: file } = proofBy(keys[0], claim);
      const values = new Set(keys.map((key) => proofBy(key, claim).http.content));
      const shown = await Promise.all([isInDns(dns, values), isInFile(file, values)]);
      return shown.includes(true);
    },
  };
}

/**
 * Reads a file at an address that a customer has named. Connects only to public addresses, and follows no redirect.
 * Rejects for any status but 200, and for a file larger than `contentBytesMax`.
 */
async function readFirstBytes(
  address: string,
  { allowed = new Set<string>(), resolve }: Pick<DomainProofOptions, 'allowed' | 'resolve'>,
): Promise<string> {
  const { origin, protocol } = new URL(address);
  const { httpAgent, httpsAgent } = createGuardedAgents({
    origin,
    allowed,
    ...(resolve === undefined ? {} : { resolve }),
  });
  const signal = timeLimit(answerMs);
  try {
    return await new Promise<string>((done, fail) => {
      const agent = protocol === 'https:' ? httpsAgent : httpAgent;
      const request = (protocol === 'https:' ? https : http).get(address, { agent, signal }, (response) => {
        request.off('close', noAnswer);
        let text = '';
        if (response.statusCode !== 200) {
          fail(new Error(`HTTP ${response.statusCode}`));
          return;
        }
        response
          .setEncoding('latin1')
          .on('error', fail)
          .on('end', () => done(text));
        response.on('data', (part: string) => {
          text += part;
          if (text.length > contentBytesMax) request.destroy(new Error('more than a proof'));
        });
      });
      // For status 101, which changes the protocol, Node emits neither `response` nor `error`, but only `close`.
      const noAnswer = (): void => fail(new Error('closed without an answer'));
      request.on('error', fail).on('close', noAnswer);
    });
  } finally {
    httpAgent.destroy();
    httpsAgent.destroy();
  }
}
