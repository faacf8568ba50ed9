import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createProxmoxEmulator, type EmulatorAdmin, emulatorAdmin, usualTaskSeconds } from '@drydock/emulators';
import { closeServer, listen } from '@drydock/service/http';
import { vmidOf } from '../src/providers/proxmox/proxmox-shapes';

/** The token is no secret, because it is valid only during a test. */
const adminToken = 'b'.repeat(64);

/** The emulator of a cluster on a socket, with the calls by which a test prepares and checks it. */
export interface ProxmoxCluster {
  /** A target of this cluster, in the form of the configuration. */
  target: object;
  admin: EmulatorAdmin;
  /** The number of rollbacks of the server's machine that the cluster has accepted. */
  rollbacksOf(serverId: string): Promise<number>;
  writeDisk(serverId: string, content: string): Promise<void>;
  readDisk(serverId: string): Promise<string | null>;
  close(): Promise<void>;
}

const file = '/srv/state';
const machineOf = (serverId: string): string => String(vmidOf(serverId));

/** Opens a cluster. Its time passes `clockScale` times as fast as real time. */
export async function openProxmoxCluster(clockScale = 40): Promise<ProxmoxCluster> {
  const stateDir = mkdtempSync(path.join(tmpdir(), 'drydock-proxmox-'));
  const tokens = new Map([['live', 'live-secret']]);
  const server = createProxmoxEmulator({
    stateDir,
    tokens,
    readerTokens: new Map([['live', 'live-reader-secret']]),
    adminToken,
    clockScale,
    taskSeconds: usualTaskSeconds,
  });
  const { url } = await listen(server, 0, '127.0.0.1');
  const admin = emulatorAdmin(url, adminToken);
  return {
    admin,
    target: {
      ...{ driver: 'proxmox', url: `${url}/api2/json`, token: 'live@pve!drydock=live-secret', currency: 'EUR' },
      specs: { small: { hour_minor: 1, month_minor: 300 } },
      sizes: { small: { cores: 2, memory_mb: 2_048, disk_gb: 20 } },
      templates: { 'debian-12': 9_000, 'debian-12-zfs': 9_001 },
      ...{ lost_answer_seconds: 3, deadline_ms: 2_000 },
    },
    rollbacksOf: async (serverId) =>
      (await admin.readLedger()).filter(({ op, resource }) => op === 'qmrollback' && resource === machineOf(serverId))
        .length,
    writeDisk: (serverId, content) => admin.writeDisk(machineOf(serverId), file, content),
    readDisk: (serverId) => admin.readDisk(machineOf(serverId), file),
    close: async () => {
      await closeServer(server);
      rmSync(stateDir, { recursive: true, force: true });
    },
  };
}
