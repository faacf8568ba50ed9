#!/usr/bin/env bash
# build.sh FOLDER: makes a machine of 64 MB out of Debian's kernel and busybox, and of nothing else: kernel, initrd and disk.qcow2 in FOLDER.
# Needs apt, qemu-utils, busybox-static and e2fsprogs. The kernel is unpacked, not installed.
set -euo pipefail
folder=$1
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The package that is named "the current one" depends on the one that has the files.
package=$(apt-cache depends linux-image-cloud-amd64 | sed -n 's/.*Depends: \(linux-image-[0-9].*\)/\1/p' | head -1)
(cd "$work" && apt-get download -qq -o APT::Sandbox::User=root "$package")
modules='virtio_ring virtio virtio_pci_modern_dev virtio_pci_legacy_dev virtio_pci virtio_blk crc16 crc32c_generic libcrc32c mbcache jbd2 ext4'
wanted=(--wildcards './boot/vmlinuz-*')
for module in $modules; do wanted+=("*/$module.ko"); done
mkdir "$work/kernel" "$work/root" "$work/root/"{bin,dev,lib,proc,srv,sys} "$work/disk"
# What is built into the kernel has no file.
dpkg-deb --fsys-tarfile "$work"/*.deb | tar -x -C "$work/kernel" "${wanted[@]}" 2> "$work/missing" || true

cp "$(command -v busybox)" "$work/root/bin/busybox"
for applet in sh mount stty insmod cat echo sync ls rm sleep poweroff; do ln -s busybox "$work/root/bin/$applet"; done
for module in $modules; do
  file=$(find "$work/kernel" -name "$module.ko" | head -1)
  if [ -n "$file" ]; then
    cp "$file" "$work/root/lib/"
    echo "$module.ko" >> "$work/root/lib/modules.order"
  fi
done
install -m 755 "$here/init" "$work/root/init"
(cd "$work/root" && find . | busybox cpio -o -H newc | gzip -1) > "$folder/initrd" 2> "$work/cpio"

truncate -s 64M "$work/disk.raw"
mke2fs -q -t ext4 "$work/disk.raw"
qemu-img convert -O qcow2 "$work/disk.raw" "$folder/disk.qcow2"
# Last: who finds it finds the others.
cp "$work/kernel"/boot/vmlinuz-* "$folder/vmlinuz"
