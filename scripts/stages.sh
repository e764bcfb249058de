# Sourced by scripts/quickstart and scripts/test: names each stage as it begins and prints a time table when the script ends.
stage_names=() stage_seconds=()
stage() {  # name, command ...: the command's exit code is the stage's
  local name=$1 begin=$SECONDS code=0
  shift
  printf '\n== %s\n' "$name"
  "$@" || code=$?
  stage_names+=("$name")
  stage_seconds+=($((SECONDS - begin)))
  [ "$code" -eq 0 ] || { printf '== %s failed with exit code %d\n' "$name" "$code"; exit "$code"; }
}
print_stages() {
  local i
  printf '\n%-44s %8s\n' stage seconds
  for i in "${!stage_names[@]}"; do printf '%-44s %8d\n' "${stage_names[$i]}" "${stage_seconds[$i]}"; done
  printf '%-44s %8d\n' total "$SECONDS"
}
trap print_stages EXIT
