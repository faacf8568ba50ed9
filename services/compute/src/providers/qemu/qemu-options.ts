/**
 * The files that a machine boots from: a disk with a boot loader, or a kernel that QEMU loads. They are never written
 * to, because the machines' disks are overlays over them.
 */
export interface QemuImage {
  /** The absolute path of a qcow2 image. */
  disk: string;
  kernel?: string | undefined;
  initrd?: string | undefined;
  /** The kernel's command line. */
  append?: string | undefined;
}

export interface QemuSize {
  cpus: number;
  memoryMb: number;
  /** The size of the disk in GB of 10^9 bytes. */
  diskGb: number;
}

export interface QemuOptions {
  /**
   * The folder of one deploy target in one mode, as an absolute path. It contains the machines, their disks and their
   * jobs.
   */
  folder: string;
  zone: string;
  images: Readonly<Record<string, QemuImage>>;
  sizes: Readonly<Record<string, QemuSize>>;
  /** Starts the work on a machine. By default the work runs in a process of its own that outlives this one. */
  beginWork?: (machineFolder: string) => void;
}
