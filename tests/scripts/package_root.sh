#!/usr/bin/env bash
# The package in a Debian 12 that has nothing else: quickstart:rl, shortened, and serve, as root and as nobody.
# Wants root, debootstrap and a Debian mirror.
set -euo pipefail
cd "$(dirname "$0")/../.."
command -v debootstrap >/dev/null || apt-get install -y -qq --no-install-recommends debootstrap >/dev/null
scripts/package
root=$(mktemp -d)
chmod 755 "$root"
clean() {
  umount "$root/proc" "$root/dev/shm" 2>/dev/null || true
  rm -rf --one-file-system "$root"
}
trap clean EXIT
debootstrap --variant=minbase bookworm "$root" >"$root.log" 2>&1 || { tail -20 "$root.log"; exit 1; }
rm -f "$root.log"
# others may lie there, of earlier commits
tar -xzf "$(ls -t build/package/troupe-*-debian12-amd64.tar.gz | head -1)" -C "$root/opt"
mount -t proc proc "$root/proc"
mount -t tmpfs tmpfs "$root/dev/shm"
cat >"$root/try" <<'TRY'
set -euo pipefail
troupe=$(echo /opt/troupe-*/bin/troupe)
cd "$(mktemp -d)"
"$troupe" --version | grep -q '^LibTorch '
"$troupe" plan quickstart:rl | grep -q '^OK'
"$troupe" run quickstart:rl training.steps=4 checkpoint.interval=4 eval.episodes=4 >run.log 2>&1 || { cat run.log; exit 1; }
grep -q '^RUN COMPLETE quickstart-rl' run.log
! grep -i 'fontconfig' run.log
test -s runs/latest/return.png
"$troupe" verify
timeout 60 "$troupe" serve quickstart-rl --protocol openpi --bind 127.0.0.1:0 --once-selftest | grep 'self-test ok'
TRY
for user in root nobody; do
  echo "package: as $user"
  chroot --userspec="$user" "$root" env HOME=/tmp bash /try
done
echo "package: works in a minimal Debian"
