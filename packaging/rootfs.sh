#!/bin/sh
# rootfs.sh - the directory that becomes the image of superpoint-p150: the server, the entry point, the
# libraries that they load, the project's own weights, and nothing else. No shell, no package manager.
#
#   packaging/rootfs.sh [BUILD_DIR] [ROOTFS]        (build, build/rootfs)
#
# The libraries are those of this machine's Debian; their packages and versions are listed in
# usr/share/doc/image-packages.txt, and their copyright files go along.
set -eu
top=$(cd "$(dirname "$0")/.." && pwd)
build=${1:-$top/build}
root=${2:-$build/rootfs}

rm -rf "$root"
mkdir -p "$root/usr/bin" "$root/usr/share/superpoint" "$root/usr/share/doc" "$root/etc" \
    "$root/home/tt/work" "$root/tmp" "$root/hf" "$root/cache" "$root/weight-cache" "$root/tensor-cache"
# Any user id must work: these are for all, as /tmp is.
chmod 1777 "$root/tmp" "$root/home/tt" "$root/home/tt/work" "$root/cache" "$root/weight-cache" "$root/tensor-cache"
ln -s usr/lib "$root/lib"
ln -s usr/lib64 "$root/lib64"
mkdir -p "$root/usr/lib" "$root/usr/lib64"

for program in superpoint superpoint-entrypoint; do
    install -m 755 "$build/bin/$program" "$root/usr/bin/$program"
    strip --strip-unneeded "$root/usr/bin/$program" 2>/dev/null || true
done
install -m 644 "$top/weights/superpoint.safetensors" "$top/weights/superpoint.int8" "$root/usr/share/superpoint/"
if [ -f "$top/LICENSE" ]; then install -m 644 "$top/LICENSE" "$root/usr/share/doc/superpoint.LICENSE"; fi

libraries=$(ldd "$root/usr/bin/superpoint" "$root/usr/bin/superpoint-entrypoint" |
    sed -n 's/.*=> \(\/[^ ]*\) .*/\1/p; s/^[[:space:]]*\(\/[^ ]*ld[^ ]*\) .*/\1/p' | sort -u)
real=
for library in $libraries; do
    # Under the name that it is loaded by; /lib and /lib64 are links into /usr, here as there.
    case $library in /usr/*) place=$library ;; *) place=/usr$library ;; esac
    mkdir -p "$root$(dirname "$place")"
    install -m 755 "$(readlink -f "$library")" "$root$place"
    real="$real $(readlink -f "$library")"
done
doc=$root/usr/share/doc
: >"$doc/image-packages.txt"
if command -v dpkg-query >/dev/null; then
    # shellcheck disable=SC2086
    for package in $(dpkg-query -S $real 2>/dev/null | sed 's/:.*//' | sort -u); do
        printf '%s %s\n' "$package" "$(dpkg-query -W -f '${Version}\n' "$package" | head -n 1)" >>"$doc/image-packages.txt"
        if [ -f "/usr/share/doc/$package/copyright" ]; then
            install -m 644 "/usr/share/doc/$package/copyright" "$doc/$package.copyright"
        fi
    done
fi
echo 'root:x:0:0:root:/root:/sbin/nologin
tt:x:1000:1000:tt:/home/tt:/sbin/nologin' >"$root/etc/passwd"
echo 'root:x:0:
tt:x:1000:' >"$root/etc/group"
du -sh "$root" | sed 's/\t.*//; s/^/rootfs: /'
