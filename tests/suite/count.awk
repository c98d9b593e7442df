# awk -f count.awk LastTest.log: what each check cost, longest first, by processors' time as timed.sh
# says it, with the time by the clock beside it; and last "N passed, N failed, N skipped" over ctest's log, in the words of the
# runners: GoogleTest, node (TAP), vitest, and "N passed, N failed[, N skipped]" of our own. A check
# without any of these is one test, a build none. A runner that ran no test has failed; so has what was
# not run, as something that it needs could not be built, of which ctest's log says that it passed.
/^(Failed test dependencies|Unable to find executable):/ { not_run = 1 }
/^[0-9]+\/[0-9]+ Testing: / { name = $3; passed = failed = skipped = counts = worked = 0 }
/^\[  PASSED  \] [0-9]+ test/ { passed += $4; counts = 1 }
/^\[  FAILED  \] .*\([0-9]+ ms\)$/ { ++failed; counts = 1 }
/^\[  SKIPPED \] [0-9]+ test/ { skipped += $4 }
/^# pass [0-9]/ { passed += $3; counts = 1 }
/^# fail [0-9]/ { failed += $3 }
/^# skipped [0-9]/ { skipped += $3 }
$1 == "Tests" && / \([0-9]+\)$/ {
  counts = 1
  for (i = 2; i < NF; ++i) {
    if ($(i + 1) == "passed") passed += $i
    if ($(i + 1) == "failed") failed += $i
    if ($(i + 1) == "skipped" || $(i + 1) == "todo") skipped += $i
  }
}
/^[0-9]+ passed, [0-9]+ failed(, [0-9]+ skipped)?$/ { passed += $1; failed += $3; skipped += $5; counts = 1 }
/^processor time$/ { worked = 0; times_lines = 2; next }
times_lines > 0 { --times_lines; worked += seconds($1) + seconds($2) }
/^Test time = / { lasted = $4 }
/^Test (Passed|Failed|Timeout)/ {
  cost[name] = worked
  clock[name] = lasted
  good = /^Test Passed/ && !not_run
  not_run = 0
  if (good && !counts && name !~ /^build\./) passed = 1
  if (good && counts && passed + failed + skipped == 0) {
    print "ran no test: " name > "/dev/stderr"
    failed = 1
  }
  if (!good && failed == 0) failed = 1
  all_passed += passed; all_failed += failed; all_skipped += skipped
}
# "1m2.50s"
function seconds(text,   parts) {
  split(text, parts, /[ms]/)
  return parts[1] * 60 + parts[2]
}
END {
  print "processors     clock"
  fflush()
  for (each in cost) {
    all_cost += cost[each]
    if (cost[each] < 1 && clock[each] < 1) { ++small; small_cost += cost[each]; continue }
    printf "%8.1f s %7.1f s  %s\n", cost[each], clock[each], each | "sort -rn"
  }
  close("sort -rn")
  printf "%8.1f s            %d checks of less than a second each\n", small_cost, small
  printf "%8.1f s            all\n", all_cost
  printf "%d passed, %d failed, %d skipped\n", all_passed, all_failed, all_skipped
  exit all_failed > 0
}
