# Sourced by scripts/package: where the licence of a file is that the package carries.
# Of a Debian package its copyright file, of an unpacked wheel (.deps/) its folder of licences.
licence_of() {  # path
  local path package
  path=$(readlink -f "$1")
  case "$path" in
    */.deps/torch/*) compgen -G ".deps/licenses/torch-*" && return ;;
    */.deps/nvidia/*/libcudart.*) compgen -G ".deps/licenses/nvidia_cuda_runtime-*" && return ;;
    */.deps/nvidia/*/libcupti.*) compgen -G ".deps/licenses/nvidia_cuda_cupti-*" && return ;;
    */.deps/pyarrow/*) compgen -G ".deps/licenses/pyarrow-*" && return ;;
    */.deps/mujoco/*) compgen -G ".deps/licenses/mujoco-*" && return ;;
    *)
      # /lib is a link to /usr/lib, and dpkg knows a file by the one of them that its package names
      package=$({ dpkg-query -S "$path" || dpkg-query -S "${path#/usr}"; } 2>/dev/null | head -1 | cut -d: -f1) || package=
      [ -f "/usr/share/doc/$package/copyright" ] && echo "/usr/share/doc/$package/copyright" && return
      ;;
  esac
  echo "package: $1: its licence is not known, so it cannot be carried" >&2
  return 1
}
