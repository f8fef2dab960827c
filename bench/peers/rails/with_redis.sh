#!/bin/sh
# A program and the Redis that it publishes through, in the foreground: both end with this script.
#
#     with_redis.sh "REDIS AND ITS ARGUMENTS" PROGRAM [ARGUMENTS]
sh -c "exec $1" &
redis=$!
shift
"$@" &
program=$!

end_all() {
  kill -TERM "$program"
  wait "$program"
  kill -TERM "$redis"
  wait "$redis"
  exit 0
}
trap end_all TERM INT
wait "$program"
kill "$redis"
