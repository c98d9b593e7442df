#!/bin/sh
# What the action runs. From its inputs, as variables: $SCENARIO, $SET (one path=value a line), $UNDECIDED (pass or
# fail), $JUNIT; $SERVECAST is the command. Annotations go to stdout; state=met, missed or undecided to
# $GITHUB_OUTPUT. Exit: 0; 1 missed; 2 bad input; 3 undecided, if that is to fail.
set -eu
case ${UNDECIDED:-pass} in
pass | fail) ;;
*)
  echo "::error::undecided: found \"$UNDECIDED\", allowed are pass and fail"
  exit 2
  ;;
esac
# Words reach the command one by one and whole, whatever they hold.
set -- "$SCENARIO" --github
[ -z "${JUNIT:-}" ] || set -- "$@" --junit "$JUNIT"
while IFS= read -r line; do
  [ -z "$line" ] || set -- "$@" --set "$line"
done <<LINES
${SET:-}
LINES
status=0
"$SERVECAST" check "$@" || status=$?
case $status in
0) state=met ;;
1) state=missed ;;
3) state=undecided ;;
*) exit "$status" ;;
esac
echo "state=$state" >>"${GITHUB_OUTPUT:-/dev/null}"
[ "$status" != 3 ] || [ "${UNDECIDED:-pass}" = fail ] || exit 0
exit "$status"
