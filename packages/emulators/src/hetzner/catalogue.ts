import type { Image } from './hetzner-state';

/** The server types that can be ordered. Disks are in GB. */
export const serverTypes = [
  { id: 22, name: 'cpx11', cores: 2, memory: 2, disk: 40, architecture: 'x86' },
  { id: 23, name: 'cpx21', cores: 3, memory: 4, disk: 80, architecture: 'x86' },
  { id: 24, name: 'cpx31', cores: 4, memory: 8, disk: 160, architecture: 'x86' },
  { id: 45, name: 'cax11', cores: 2, memory: 4, disk: 40, architecture: 'arm' },
] as const;
export type ServerType = (typeof serverTypes)[number];

export const locations = [
  {
    id: 1,
    name: 'fsn1',
    description: 'Falkenstein DC Park 1',
    country: 'DE',
    city: 'Falkenstein',
    network_zone: 'eu-central',
    latitude: 50.47612,
    longitude: 12.370071,
  },
  {
    id: 2,
    name: 'nbg1',
    description: 'Nuremberg DC Park 1',
    country: 'DE',
    city: 'Nuremberg',
    network_zone: 'eu-central',
    latitude: 49.452102,
    longitude: 11.076665,
  },
  {
    id: 3,
    name: 'hel1',
    description: 'Helsinki DC Park 1',
    country: 'FI',
    city: 'Helsinki',
    network_zone: 'eu-central',
    latitude: 60.169855,
    longitude: 24.938379,
  },
] as const;

export const typeNamed = (name: string) => serverTypes.find((type) => type.name === name || String(type.id) === name);
export const locationNamed = (name: string) =>
  locations.find((location) => location.name === name || String(location.id) === name);

const systemImage = (id: number, name: string, architecture: 'x86' | 'arm'): Image => ({
  id,
  project: null,
  type: 'system',
  status: 'available',
  name,
  description: name,
  imageSize: null,
  diskSize: 5,
  created: Date.UTC(2024, 3, 25),
  createdFrom: null,
  boundTo: null,
  architecture,
  isDeleteProtected: false,
  labels: {},
  disk: { '/etc/hostname': `${name}\n` },
});

/** The images of the provider itself. */
export const systemImages: readonly Image[] = [
  systemImage(161547269, 'ubuntu-24.04', 'x86'),
  systemImage(161547270, 'ubuntu-24.04', 'arm'),
  systemImage(114690387, 'debian-12', 'x86'),
  systemImage(114690389, 'debian-12', 'arm'),
];
