#!/usr/bin/env bash
# A throw-away Python environment for benchmarks against Python packages: nothing outside FOLDER is touched.
#     bench/support/python_env.sh FOLDER PACKAGE==VERSION...
# prints the path of its interpreter (a script that sets the library path too). FOLDER belongs below build/ or a temporary folder.
# A second call with the same packages only prints; other packages make the environment anew. Every package needs an exact version;
# wheels only, from PyPI:
#     python=$(bench/support/python_env.sh build/python-env $(cat bench/data/python_packages.txt))
#     "$python" my_bench.py
# That list is one, so that the benchmarks of bench/data share one environment.
# torch of PyPI is the CUDA build: it brings the NVIDIA wheels that it links against (about 5 GB in all), and then `import torch`
# works on a machine without a GPU. TorchCodec needs nvidia-npp beside them, and takes the FFmpeg that the loader finds, which is the
# system's (5.1 on Debian 12): the environment holds no FFmpeg but PyAV's own, whose libraries have names that nothing else asks for.
set -euo pipefail
[ $# -ge 2 ] || { sed -n '2,13p' "$0" >&2; exit 2; }
folder=$1
shift
for package in "$@"; do
  case $package in
    *==*) ;;
    *) echo "python_env: '$package' has no exact version; write NAME==VERSION" >&2; exit 2 ;;
  esac
done
python=${PYTHON:-python3}
want=$("$python" --version && printf '%s\n' "$@" | sort)
mkdir -p "$(dirname "$folder")"
exec 9>"$folder.lock"  # two benchmarks may want it at once
flock 9
if [ "$(cat "$folder/.packages" 2>/dev/null)" != "$want" ]; then
  rm -rf "$folder"
  "$python" -m venv "$folder" >&2
  echo "python_env: installing $* into $folder" >&2
  # a time limit, because an unreachable registry must not hold a benchmark for ever
  timeout 1800 "$folder/bin/python" -m pip install --quiet --disable-pip-version-check --no-cache-dir --only-binary=:all: "$@" >&2
  folder=$(realpath "$folder")
  # TorchCodec links FFmpeg's libavdevice and calls nothing of it: where the system lacks it, an empty library takes its place
  if ! ldconfig -p | grep -q 'libavdevice\.so\.59 '; then
    "${CC:-cc}" -shared -Wl,-soname,libavdevice.so.59 -o "$folder/lib/libavdevice.so.59" -x c /dev/null >&2
  fi
  libraries=$folder/lib$(find "$folder"/lib/python*/site-packages/nvidia -name lib -type d -printf ':%p' 2>/dev/null || true)
  printf '#!/bin/sh\nLD_LIBRARY_PATH=%s exec %s/bin/python "$@"\n' "$libraries" "$folder" >"$folder/bin/bench-python"
  chmod +x "$folder/bin/bench-python"
  printf '%s\n' "$want" >"$folder/.packages"
fi
echo "$(realpath "$folder")/bin/bench-python"
