# awk -f count.awk LastTest.log: "N passed, N failed, N skipped" over ctest's log, in the words of the
# runners: GoogleTest, node (TAP), vitest, and "N passed, N failed[, N skipped]" of our own. A check
# without any of these is one test, a build none. A runner that ran no test has failed; so has what was
# not run, as something that it needs could not be built, of which ctest's log says that it passed.
/^(Failed test dependencies|Unable to find executable):/ { not_run = 1 }
/^[0-9]+\/[0-9]+ Testing: / { name = $3; passed = failed = skipped = counts = 0 }
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
/^Test (Passed|Failed|Timeout)/ {
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
END {
  printf "%d passed, %d failed, %d skipped\n", all_passed, all_failed, all_skipped
  exit all_failed > 0
}
