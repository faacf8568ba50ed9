/**
 * The files that a machine boots from: its own boot loader, or a kernel that QEMU loads. They are never changed in
 * place: disks are overlays over them.
 */
export interface QemuImage {
  /** A qcow2 image, absolute. */
  disk: string;
  kernel?: string | undefined;
  initrd?: string | undefined;
  /** The kernel's command line. */
  append?: string | undefined;
}

export interface QemuSize {
  cpus: number;
  memoryMb: number;
  /** GB of 10^9 bytes. */
  diskGb: number;
}

export interface QemuOptions {
  /**
   * The folder of one deploy target in one mode, an absolute path: its machines, their disks and the record of their
   * jobs.
   */
  folder: string;
  zone: string;
  images: Readonly<Record<string, QemuImage>>;
  sizes: Readonly<Record<string, QemuSize>>;
  /** Starts the work on a machine; by default in a process of its own that outlives this one. */
  beginWork?: (machineFolder: string) => void;
}
