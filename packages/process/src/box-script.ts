import type { ChildProcess } from 'node:child_process';
import { Server } from 'node:net';
import os from 'node:os';
import type { ChildExit } from './guarded-child';

/**
 * The script that creates a box. It is the first process of new mount and process namespaces. When its command ends, it
 * ends too, and the kernel ends all other processes of the box. Texts of callers reach the script only as arguments:
 *
 * SIZE_OF_TMP UID GID WORKDIR NAMESPACES FREE_FD NODE HAND_OVER PORTS NUMBER_OF_MOUNTS (FROM TO ro|rw)… COMMAND…
 *
 * - NAMESPACES: how many user namespaces the box may create, or empty for no limit. It is empty for root, because
 * root's boxes share the machine's user namespace and its limit.
 * - FREE_FD: the command gets only the descriptors below this number.
 * - PORTS: empty if the box shares the machine's network. Otherwise Node runs HAND_OVER ({@link handOverSource}), which
 * passes listening sockets on over descriptor 8. Node reads files of the machine, so it starts before the mounts and
 * ends before the root changes.
 *
 * Descriptor 9 is a socket to the process that requested the box. The script writes errors to it. The process that
 * becomes the command writes "ready" and waits for "go". If the requester has died, nothing is started.
 *
 * The script's variables begin with `_box_`, to differ from those of the command's environment. The new root is a tmpfs
 * over /sys, because every machine has that folder and no box shows it.
 */
export const boxScript = `
set -eu
_box_path=\${PATH-}
PATH=/usr/sbin:/usr/bin:/sbin:/bin
_box_tmp_bytes=$1 _box_uid=$2 _box_gid=$3 _box_workdir=$4 _box_namespaces=$5 _box_free=$6
shift 6
_box_node=$1 _box_hand_over=$2 _box_ports=$3 _box_mounts=$4
shift 4
# If the machine has no memory left, the kernel ends a process of a box before any of ours.
{ echo 1000 > /proc/self/oom_score_adj; } 2>/dev/null || :

# Opening an interface takes an ioctl that no program of util-linux makes. Every system has ip or perl.
_box_loopback() {
  ip link set lo up 2>/dev/null ||
    perl -e 'socket(S, 2, 2, 0) && ioctl(S, 0x8914, pack("a16s", "lo", 0x41)) or exit 1' 2>/dev/null ||
    { echo 'neither ip (iproute2) nor perl can open the loopback of a network'; return 1; }
}

_box_system() {
  mount -t tmpfs -o mode=755,size=4m,nr_inodes=2k,nosuid,nodev box /sys
  cd /sys
  mkdir -p usr etc/ssl etc/pki dev proc tmp
  mount -o bind,ro,nosuid,nodev /usr usr
  set --
  for _box_name in bin sbin lib lib32 lib64 libx32; do
    if [ -L "/$_box_name" ]; then set -- "$@" "/$_box_name"
    elif [ -d "/$_box_name" ]; then mkdir "$_box_name"; mount -o bind,ro,nosuid,nodev "/$_box_name" "$_box_name"; fi
  done
  if [ $# -gt 0 ]; then cp -P -- "$@" .; fi
  set --
  for _box_name in resolv.conf hosts nsswitch.conf services localtime ld.so.cache; do
    if [ -f "/etc/$_box_name" ]; then set -- "$@" "/etc/$_box_name"; fi
  done
  if [ $# -gt 0 ]; then cp -L -- "$@" etc/; fi
  for _box_name in ssl/certs pki/tls/certs pki/ca-trust alternatives; do
    if [ -d "/etc/$_box_name" ]; then
      mkdir -p "etc/$_box_name"
      mount -o bind,ro,nosuid,nodev "/etc/$_box_name" "etc/$_box_name"
    fi
  done
  printf 'root:x:0:0:root:/:/bin/false\\napp:x:%s:%s:app:/tmp:/bin/sh\\n' "$_box_uid" "$_box_gid" > etc/passwd
  printf 'root:x:0:\\napp:x:%s:\\n' "$_box_gid" > etc/group
  for _box_name in null zero random urandom; do
    : > "dev/$_box_name"
    mount -o bind,nosuid "/dev/$_box_name" "dev/$_box_name"
  done
  ln -s /proc/self/fd dev/fd
  ln -s /proc/self/fd/0 dev/stdin
  ln -s /proc/self/fd/1 dev/stdout
  ln -s /proc/self/fd/2 dev/stderr
  ln -s /tmp dev/shm
  mount -t tmpfs -o "mode=1777,size=$_box_tmp_bytes,nr_inodes=16k,nosuid,nodev" tmp tmp
  mount -t proc -o hidepid=2,nosuid,nodev,noexec proc proc
  # These files tell about the whole machine, and no program of a customer needs them.
  for _box_name in kallsyms key-users keys locks modules; do
    if [ -e "proc/$_box_name" ]; then echo "/dev/null /sys/proc/$_box_name none bind,ro 0 0"; fi
  done > hidden
  if [ -s hidden ]; then mount --all --fstab hidden; fi
  rm hidden
  if [ -n "$_box_namespaces" ]; then echo "$_box_namespaces" > proc/sys/user/max_user_namespaces; fi
}

_box_mount() {
  case $3 in
    rw) _box_options=bind,nosuid,nodev ;;
    *) _box_options=bind,ro,nosuid,nodev ;;
  esac
  if [ -d "$1" ]; then mkdir -p ".$2"; else mkdir -p ".\${2%/*}"; : > ".$2"; fi
  mount -o "$_box_options" -- "$1" ".$2"
}

_box_enter() {
  pivot_root . .
  umount -l .
  cd /
  mount -o remount,bind,ro,nosuid,nodev /
}

_box_process=
if [ -n "$_box_ports" ]; then
  _box_loopback >&9 2>&9
  # The ports are numbers, one word each.
  env -i "NODE_CHANNEL_FD=$NODE_CHANNEL_FD" "$_box_node" -e "$_box_hand_over" $_box_ports >&9 2>&9 &
  _box_process=$!
  exec 8>&-
  unset NODE_CHANNEL_FD NODE_CHANNEL_SERIALIZATION_MODE
fi
_box_system >&9 2>&9
while [ "$_box_mounts" -gt 0 ]; do
  _box_mount "$1" "$2" "$3" >&9 2>&9
  shift 3
  _box_mounts=$((_box_mounts - 1))
done
if [ -n "$_box_process" ]; then wait "$_box_process"; fi
_box_enter >&9 2>&9
cd "$_box_workdir" 2>&9
# The shell reports a command that a signal ended. Nobody needs that line.
exec 8>&2 2>/dev/null
PATH=$_box_path
set +e
(
  echo ready >&9
  read -r _box_answer <&9
  [ "$_box_answer" = go ] || exit 1
  exec 9>&-
  while [ "$_box_free" -lt 8 ]; do eval "exec $_box_free>&-"; _box_free=$((_box_free + 1)); done
  unset PWD OLDPWD
  exec "$@"
) 2>&8 8>&-
exit $?
`;

/**
 * The script that puts a command into a user namespace in which no other user namespace can be created. The script runs
 * as the account of a box that root has created. If the kernel already forbids namespaces, the script only runs the
 * command. Arguments: UNSHARE UID COMMAND…
 */
export const lastNamespaceScript = `
_box_unshare=$1 _box_uid=$2
shift 2
unset PWD OLDPWD
if "$_box_unshare" --user "--map-user=$_box_uid" "--map-group=$_box_uid" --keep-caps -- \\
  /bin/sh -c 'echo 0 > /proc/sys/user/max_user_namespaces' 2>/dev/null
then exec "$_box_unshare" --user "--map-user=$_box_uid" "--map-group=$_box_uid" --keep-caps -- \\
  /bin/sh -c 'echo 0 > /proc/sys/user/max_user_namespaces; unset PWD OLDPWD; exec "$@"' sh "$@"
fi
exec "$@"
`;

/**
 * The descriptor over which {@link handOverSource} passes its sockets. The box's command does not get this descriptor.
 */
export const handOverFd = 8;
/**
 * A port below this number needs a privilege. The command of a box does not have it, not even in the box's own network.
 */
export const privilegedPorts = 1_024;

/**
 * The source of a program that runs in the box's network while the box is created, before rights are dropped. The
 * program listens on the ports in its arguments and passes each listening socket on. A socket stays in the network in
 * which it was created. So the receiver, which is outside of the box, accepts connections from inside the box.
 */
export const handOverSource = `
const net = require('node:net');
const fail = (error) => { process.stderr.write(error.message); process.exit(1); };
(async () => {
  for (const port of process.argv.slice(1).map(Number)) {
    const server = net.createServer();
    await new Promise((resolve, reject) => server.once('error', reject).listen(port, '127.0.0.1', resolve));
    await new Promise((resolve, reject) =>
      process.send({ port }, server, (error) => (error ? reject(error) : resolve())));
  }
  process.disconnect();
  process.exit(0);
})().catch(fail);
`;

/** The listeners in a box's network, by port. */
export type BoxListeners = ReadonlyMap<number, Server>;

/**
 * Resolves when every port has a listener, and never if the box does not start. The listeners close when the box ends.
 */
export function takeListeners(child: ChildProcess, ports: readonly number[]): Promise<BoxListeners> {
  const taken = new Map<number, Server>();
  return new Promise((resolve) => {
    if (ports.length === 0) resolve(taken);
    child.on('message', ({ port }: { port: number }, handle: unknown) => {
      if (handle instanceof Server) taken.set(port, handle);
      if (taken.size === ports.length) resolve(taken);
    });
    child.once('exit', () => {
      for (const server of taken.values()) server.close();
    });
  });
}

const signalNames = new Map(Object.entries(os.constants.signals).map(([name, number]) => [number, name]));

/**
 * Returns how the command ended. The script exits as a shell does: with 128 and the signal's number if a signal ended
 * the command.
 */
export function exitOf(code: number | null, signal: NodeJS.Signals | null): ChildExit {
  const name = code === null ? undefined : signalNames.get(code - 128);
  return isSignal(name) ? { code: null, signal: name } : { code, signal };
}

const isSignal = (name: string | undefined): name is NodeJS.Signals =>
  name !== undefined && name in os.constants.signals;
