#!/bin/sh
# use_mirror.sh URL: this machine's Debian sources are taken from URL/debian and URL/debian-security instead of
# http://deb.debian.org; an empty URL changes nothing.
set -eu
mirror=${1:-}
[ -n "$mirror" ] || exit 0
case $mirror in
  http://* | https://*) ;;
  *) echo "use_mirror: '$mirror' is no http:// or https:// address" >&2; exit 2 ;;
esac
for file in /etc/apt/sources.list /etc/apt/sources.list.d/*; do
  [ -f "$file" ] || continue
  sed -i -E "s#https?://(deb|security)\.debian\.org#${mirror%/}#g" "$file"
done
