# Numbers, one a line -> "median (lowest .. highest)" with -v digits=N decimals; nothing -> "-".
{ x[NR] = $1 + 0; for (i = NR; i > 1 && x[i - 1] > x[i]; --i) { t = x[i]; x[i] = x[i - 1]; x[i - 1] = t } }
END {
  if (NR == 0) { print "-"; exit }
  number = "%." digits "f"
  middle = NR % 2 ? x[(NR + 1) / 2] : (x[NR / 2] + x[NR / 2 + 1]) / 2
  printf number " (" number " .. " number ")\n", middle, x[1], x[NR]
}
