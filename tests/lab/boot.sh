#!/bin/sh
# Boot a host of the laboratory: the first process of new mount, PID, UTS, IPC, network and
# cgroup namespaces becomes systemd in an overlay root. Called by host.py.
#   boot.sh NAME LOWER FOLDER      FOLDER holds upper/, work/, root/ and sys/ (see host.py)
#
# What belongs to the whole machine is shielded: /sys and /proc/sys are read-only but for the
# settings that the farm's roles write, which are copies of this host's own.
set -eu
name=$1 lower=$2 folder=$3
hostname "$name"
mount -t overlay overlay -o "lowerdir=$lower,upperdir=$folder/upper,workdir=$folder/work" "$folder/root"
cd "$folder/root"
mkdir -p .lab/proc .lab/old
# A proc that nothing is mounted over: without one the kernel refuses bubblewrap's own.
mount -t proc proc .lab/proc
mount -t proc proc proc
mount -t sysfs -o ro sysfs sys
mount -t cgroup2 cgroup2 sys/fs/cgroup
for shielded in proc/sys proc/irq proc/sysrq-trigger; do
  [ -e "$shielded" ] || continue
  mount --bind "$shielded" "$shielded"
  mount -o remount,bind,ro "$shielded"
done
mkdir -p "$folder/sys/proc/sys"
cp -r --no-preserve=all .lab/proc/sys/vm "$folder/sys/proc/sys/" 2> /dev/null || true
mount --bind "$folder/sys/proc/sys/vm" proc/sys/vm
for setting in numa_balancing nmi_watchdog sched_rt_runtime_us; do
  [ -e "proc/sys/kernel/$setting" ] || continue
  cat "proc/sys/kernel/$setting" > "$folder/sys/proc/sys/$setting"
  mount --bind "$folder/sys/proc/sys/$setting" "proc/sys/kernel/$setting"
done
# Two hosts with one boot id are one machine: a kibitzer would refuse to start beside the hall.
# Units that systemd gives a /proc of their own (ProtectControlGroups= does here) see none of these
# mounts, so it puts the id into each of the farm's.
cat proc/sys/kernel/random/uuid > .lab/boot_id
mount --bind .lab/boot_id proc/sys/kernel/random/boot_id
mkdir -p etc/systemd/system/farm-.service.d
printf '[Service]\nBindReadOnlyPaths=/.lab/boot_id:/proc/sys/kernel/random/boot_id\n' \
  > etc/systemd/system/farm-.service.d/boot-id.conf
for tree in devices/system/cpu devices/virtual/workqueue kernel/mm; do
  [ -d "$folder/sys/$tree" ] && mount --bind "$folder/sys/$tree" "sys/$tree"
done
mount -t tmpfs -o mode=755,nosuid,nodev tmpfs run
mount -t tmpfs -o mode=755,nosuid tmpfs dev
mkdir dev/pts dev/shm
mount -t devpts -o newinstance,ptmxmode=0666,mode=620,gid=5 devpts dev/pts
mount -t tmpfs -o mode=1777,nosuid,nodev tmpfs dev/shm
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
for device in null zero full random urandom tty; do
  touch "dev/$device"
  mount --bind "/dev/$device" "dev/$device"
done
# The machine's clock, kernel modules, raw memory and log belong to no host.
mount --make-rprivate .
pivot_root . .lab/old
umount -l /.lab/old
# As systemd finds it on a machine: units' credentials are mounted by a process beside it.
mount --make-rshared /
exec setpriv --bounding-set=-sys_time,-sys_module,-sys_rawio,-syslog,-wake_alarm,-mac_admin,-mac_override \
  env -i container=lab LANG=C.UTF-8 PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin /sbin/init
