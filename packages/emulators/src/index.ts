export { type EmulatorAdmin, emulatorAdmin } from './admin-client';
export { createHetznerEmulator } from './hetzner/hetzner-emulator';
export { usualActionSeconds } from './hetzner/hetzner-world';
export type { FaultWish } from './protocol/faults';
export type { LedgerEntry } from './protocol/state-file';
export { createProxmoxEmulator } from './proxmox/proxmox-emulator';
export { usualTaskSeconds } from './proxmox/proxmox-world';
export { type RunningS3, startS3 } from './s3/s3-emulator';
export { createVendorEmulator } from './vendor/vendor-emulator';
