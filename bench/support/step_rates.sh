# Rates of runs that print "steps cpu_seconds wall_seconds", as bench_env_sim --pool does. To be sourced, with $root set.

# rates COLUMN DIGITS FILE [OTHER]: thousand steps per second of column 2 (CPU) or 3 (wall) over the lines of FILE, a line a round, as a median
# (lowest .. highest); with OTHER the rates of FILE over those of OTHER, round by round.
rates() {
  paste "$3" "${4:-$3}" | awk -v c="$1" -v ratio="${4:+yes}" '{ r = $1 / $c / 1000; print ratio ? r / ($4 / $(c + 3) / 1000) : r }' |
    awk -v digits="$2" -f "$root/bench/support/medians.awk"
}
