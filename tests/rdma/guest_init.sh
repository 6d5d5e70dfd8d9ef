#!/bin/busybox sh
# shellcheck shell=dash
# The first program of the machine of rdma_test.sh: mounts the host's root read-only, runs /out/command in it, leaves
# the status in /out/status and switches off.
/bin/busybox --install -s /bin
export PATH=/bin:/sbin:/usr/bin:/usr/sbin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
for module in virtio_pci 9pnet_virtio 9p crc32_generic crc32_pclmul veth sch_netem sch_plug ib_uverbs rdma_ucm rdma_rxe; do
  modprobe "$module" 2>/dev/null
done
options=trans=virtio,version=9p2000.L,msize=262144
mount -t 9p -o "$options,ro,cache=loose" root /host || echo "no root from the host"
mount -t 9p -o "$options" out /out || echo "no place for results"
mount -t proc proc /host/proc
mount -t sysfs sys /host/sys
mount -t devtmpfs dev /host/dev
mkdir -p /host/dev/shm /host/dev/pts
mount -t tmpfs tmp /host/dev/shm
# A place that every Debian system has, for the results.
mount -o bind /out /host/mnt
ip link set lo up
chroot /host /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/dev/shm TMPDIR=/dev/shm \
  /bin/bash -c "cd /dev/shm && $(cat /out/command)"
echo $? >/out/status
sync
umount /out 2>/dev/null
poweroff -f
