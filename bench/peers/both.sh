#!/bin/sh
# Runs a program, $FIRST, and the one that depends on it, $SECOND, in the foreground. Both end with this script, in the opposite order: by
# $STOP, with which the children of the second end too.
sh -c "exec $FIRST" &
first=$!
sh -c "exec $SECOND" &
second=$!

end_all() {
  for pid in $(pgrep -P "$second") "$second" "$first"; do
    kill -s "$STOP" "$pid" 2> /dev/null
    [ "$STOP" = KILL ] || wait "$pid" 2> /dev/null
  done
  exit 0
}
trap end_all TERM INT
wait "$second"
kill "$first"
