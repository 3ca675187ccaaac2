#!/bin/sh
# Run the steps of an image's build in an overlay root, as an engine would: called by image.py in a
# mount and PID namespace of its own.
#   image.sh LOWER FOLDER CONTEXT < steps      a step a line: run COMMAND, or copy FROM TO
set -eu
lower=$1 folder=$2 context=$3
root=$folder/root
mount --make-rprivate /
mkdir -p "$folder/upper" "$folder/work" "$root"
mount -t overlay overlay -o "lowerdir=$lower,upperdir=$folder/upper,workdir=$folder/work" "$root"
mount -t proc proc "$root/proc"
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
for device in null zero full random urandom tty; do
  touch "$root/dev/$device"
  mount --bind "/dev/$device" "$root/dev/$device"
done
ln -s /proc/self/fd "$root/dev/fd"
mkdir "$root/dev/shm"
mount -t tmpfs -o mode=1777,size=64m tmpfs "$root/dev/shm" # as large as container engines make it
while read -r kind words; do
  case "$kind" in
    run) # packages and wheels come from the laboratory's folders
      chroot "$root" env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
        PIP_NO_INDEX=1 PIP_FIND_LINKS=/srv/wheels DEBIAN_FRONTEND=noninteractive sh -c "$words" < /dev/null ;;
    as) # the image's user, with its environment and nothing else; a root that was changed by chroot
        # may make no user namespaces, that of a container may
      user=${words%% *}
      unshare --mount sh -eu -c 'cd "$1"; pivot_root . .; umount -l .; cd /
        exec setpriv --reuid "${2%:*}" --regid "${2#*:}" --clear-groups env -i sh -c "$3"' \
        sh "$root" "$user" "${words#* }" < /dev/null ;;
    copy)
      set -- $words
      if [ -d "$context/$1" ]; then
        mkdir -p "$root$2"
        cp -a "$context/$1/." "$root$2"
      else
        cp -a "$context/$1" "$root$2"
      fi ;;
  esac
done
