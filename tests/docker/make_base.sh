#!/usr/bin/env bash
# make_base.sh OUT.tar: a minimal Debian 12 root as the base image of the tests, since no registry of images is asked. It reaches
# the package mirrors the way this machine does: its apt sources, what its apt knows of fetching, its pip configuration and
# its certificates are copied in. None of that enters an image that anybody ships.
set -euo pipefail
out=$1
root=$(mktemp -d "${out%/*}/base-root.XXXXXX")
trap 'rm -rf "$root"' EXIT

mirror=$(cat /etc/apt/sources.list.d/*.sources /etc/apt/sources.list /etc/apt/sources.list.d/*.list 2> /dev/null |
  grep -v '^ *#' | grep -oE 'https?://[^ ]*/debian/?( |$)' | head -n 1 | tr -d ' ' || true)
debootstrap --variant=minbase bookworm "$root" "${mirror:-http://deb.debian.org/debian}"

copy() { install -D -m 644 "$1" "$root$1"; }
rm -f "$root/etc/apt/sources.list"
for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.sources /etc/apt/sources.list.d/*.list \
    /etc/apt/keyrings/* /etc/apt/auth.conf.d/* /etc/pip.conf /etc/ssl/certs/ca-certificates.crt /usr/local/share/ca-certificates/*.crt; do
  [[ ! -f $file ]] || copy "$file"
done
for file in /etc/apt/apt.conf.d/*; do
  if grep -q 'Acquire::' "$file" && ! grep -q 'Invoke' "$file"; then copy "$file"; fi
done
rm -rf "$root"/var/cache/apt/archives/*.deb "$root"/var/lib/apt/lists/* "$root"/usr/share/{doc,man,locale}/*
tar -C "$root" -c . -f "$out.part"
mv "$out.part" "$out"
