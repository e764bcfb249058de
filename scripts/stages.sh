# Sourced by scripts/quickstart and scripts/test: names each stage as it begins and prints a time table when the script ends.
# Seconds are wall time; CPU seconds are user and system time of all processes of the stage that have ended.
stage_names=() stage_seconds=() stage_cpu_seconds=()
ended_cpu_seconds() {  # sets cpu_seconds; a subshell would read its own (proc(5): cutime and cstime of this shell)
  local fields
  read -ra fields </proc/$$/stat
  cpu_seconds=$(((fields[15] + fields[16]) / $(getconf CLK_TCK)))
}
stage() {  # name, command ...: the command's exit code is the stage's
  local name=$1 begin=$SECONDS code=0 cpu_seconds cpu_begin
  shift
  ended_cpu_seconds
  cpu_begin=$cpu_seconds
  printf '\n== %s\n' "$name"
  "$@" || code=$?
  stage_names+=("$name")
  stage_seconds+=($((SECONDS - begin)))
  ended_cpu_seconds
  stage_cpu_seconds+=($((cpu_seconds - cpu_begin)))
  [ "$code" -eq 0 ] || { printf '== %s failed with exit code %d\n' "$name" "$code"; exit "$code"; }
}
print_stages() {
  local i cpu_seconds
  printf '\n%-44s %8s %12s\n' stage seconds 'CPU seconds'
  for i in "${!stage_names[@]}"; do
    printf '%-44s %8d %12d\n' "${stage_names[$i]}" "${stage_seconds[$i]}" "${stage_cpu_seconds[$i]}"
  done
  ended_cpu_seconds
  printf '%-44s %8d %12d\n' total "$SECONDS" "$cpu_seconds"
}
trap print_stages EXIT
