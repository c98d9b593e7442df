#!/bin/sh
# timed.sh COMMAND...: runs it and says how long processors worked for it (`times`: of the shell, then
# of what it started), which unlike time by the clock does not depend on what runs beside it. count.awk
# reads it.
"$@"
code=$?
echo "processor time"
times
exit $code
