#!/usr/bin/env bash
# Installs what building kith needs and is not there yet: Debian packages (scripts/packages.txt) and the pinned LibTorch.
# When everything is there it looks only, takes a moment, and needs neither network nor root.
#
#   scripts/setup.sh             what building and the demo need
#   scripts/setup.sh --test      also what only the tests need (scripts/packages-test.txt)
#   scripts/setup.sh --containers  also a container engine for tests/docker (scripts/packages-containers.txt)
#   scripts/setup.sh --no-torch  without LibTorch (builds with KITH_TORCH=OFF)
#   scripts/setup.sh --cuda      LibTorch with CUDA
set -euo pipefail

scripts=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
say() { echo "setup: $*" >&2; }
die() { say "$*"; exit 1; }

lists=("$scripts/packages.txt")
torch=yes
fetch=()
for argument in "$@"; do
  case $argument in
    --test) lists+=("$scripts/packages-test.txt") ;;
    --containers) lists+=("$scripts/packages-containers.txt") ;;
    --no-torch) torch=no ;;
    --cuda) fetch=(--cuda) ;;
    *) say "unknown argument '$argument' (known: --test --containers --no-torch --cuda)"; exit 2 ;;
  esac
done
mapfile -t wanted < <(sed 's/#.*//; s/[[:space:]]//g; /^$/d' "${lists[@]}")

missing() {
  local installed
  # dpkg-query fails when it does not know one of the names: that one is missing.
  installed=$({ dpkg-query -W -f='${db:Status-Status} ${Package}\n' "${wanted[@]}" 2> /dev/null || true; } |
    sed -n 's/^installed //p')
  printf '%s\n' "${wanted[@]}" | grep -vxF "${installed:-none}" || true
}

# Runs a command as root, without ever asking for anything when nobody is there to answer.
as_root() {
  if [[ $(id -u) == 0 ]]; then
    "$@" < /dev/null
  elif [[ -t 0 ]]; then
    sudo -- "$@"
  else
    sudo -n -- "$@" < /dev/null
  fi
}

apt() {
  as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 -o Acquire::Retries=2 \
    -o Dpkg::Use-Pty=0 "$@" >> "$log" 2>&1
}

# A package that brings a service (the tests' Prometheus and container engine) neither starts it now nor at the next boot:
# services_off before apt runs, services_back PACKAGE... after it.
policy=/usr/sbin/policy-rc.d
placed_policy=no
services_off() {
  [[ ! -e $policy ]] || return 0
  as_root sh -c 'printf "#!/bin/sh\nexit 101\n" > "$1" && chmod 755 "$1"' sh "$policy" 2>> "$log" || return 0
  placed_policy=yes
}
services_back() {
  [[ $placed_policy == no ]] || as_root rm -f "$policy"
  placed_policy=no
  local units=()
  [[ " $* " != *" prometheus "* ]] || units+=(prometheus.service)
  [[ " $* " != *" docker.io "* ]] || units+=(docker.service docker.socket containerd.service)
  if [[ ${#units[@]} -gt 0 ]] && command -v systemctl > /dev/null; then
    as_root systemctl disable "${units[@]}" >> "$log" 2>&1 || true
  fi
}

reason() { grep -m1 -E '^(E:|Err:|W: Failed|sudo:)' "$log" || tail -n 1 "$log"; }

install_packages() {
  local packages=("$@")
  say "installing ${#packages[@]} packages: ${packages[*]}"
  # What the machine knows of its mirror may be absent or out of date: then, and only then, it is refreshed.
  services_off
  if ! apt-cache show "${packages[@]}" > /dev/null 2>&1 || ! apt install -y --no-install-recommends "${packages[@]}"; then
    apt update || die "cannot reach the package mirror, missing: ${packages[*]} ($(reason))"
    apt install -y --no-install-recommends "${packages[@]}" ||
      die "cannot install, missing: $(missing | tr '\n' ' ')($(reason))"
  fi
  services_back "${packages[@]}"
  say "packages are installed"
}

if command -v dpkg-query > /dev/null && command -v apt-get > /dev/null; then
  mapfile -t absent < <(missing)
  if [[ ${#absent[@]} -gt 0 ]]; then
    if [[ $(id -u) != 0 ]] && ! command -v sudo > /dev/null; then
      die "missing: ${absent[*]} (run as root: apt-get install ${absent[*]})"
    fi
    log=$(mktemp)
    trap 'services_back; rm -f "$log"' EXIT
    install_packages "${absent[@]}"
  fi
else
  say "this is not Debian: the packages in scripts/packages.txt are taken to be there under whatever name"
fi

if [[ $torch == yes ]]; then
  "$scripts/fetch_torch.sh" "${fetch[@]}" > /dev/null
fi
