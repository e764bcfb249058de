# What the scripts of bench/peers that measure PyTorch beside ours have in common. To be sourced by one that has root, out, troupe, note and the words of
# read_options. Goes to the root of the tree; work is a folder that goes with the script. PyTorch is of build/python-env, beside it the simulators of
# build/peers-env, or of peers_folder with the packages of the list peers_list: sets peers, python and packages.
refuse_dirty_tree "$out"
need_program "$troupe" troupe
cd "$root"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
peers=$(bench/support/python_env.sh "${peers_folder:-build/peers-env}" $(cat "${peers_list:-bench/peers/python_packages.txt}"))
python=$(bench/support/python_env.sh build/python-env $(cat bench/data/python_packages.txt))
packages=$("$peers" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')

# peer PROGRAM ARGUMENTS: one of bench/peers; what it says on stderr is shown where it fails, which ends the script
peer() { PYTHONPATH=$packages "$python" -W ignore "bench/peers/$1" "${@:2}" 2>"$work/error" || { cat "$work/error" >&2; exit 1; }; }

# our_run JOB k=v...: a new run, with the k=v of the command line; what it said is shown where it fails, which ends the script
our_run() {
  "$troupe" run "$1" --resume never "${@:2}" ${words[@]+"${words[@]}"} >"$work/error" 2>&1 || { cat "$work/error" >&2; exit 1; }
}

# peer_result TITLE DESCRIPTION COMMAND OURS CONFIGURATION...: prints table and versions and, where out names it, writes the result file; OURS says what
# ours ran with, CONFIGURATION is the job's file, or several
peer_result() {
  printf '%s\n\n%s; ours: %s\n' "$table" "$versions" "$("$troupe" --version)"
  [ -n "$out" ] || return 0
  mkdir -p "$(dirname "$out")"
  {
    printf '# %s\n\n%s\n\n%s\n\n' "$1" "$2" "$table"
    echo "- command: \`$3${words[*]:+ ${words[*]}}\`$note"
    commit_and_machine
    echo "- theirs: $versions, $("$python" --version)"
    echo "- ours: $(version_of "$troupe"), $4, g++ $(g++ -dumpfullversion), $(uname -sr)"
    printf '\n## Configuration\n'
    for job in "${@:5}"; do printf '```yaml\n%s\n```\n' "$(cat "$job")"; done
  } >"$out"
  echo "written: $out"
}
