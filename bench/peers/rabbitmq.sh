#!/bin/sh
# RabbitMQ and the port mapper of its own, in the foreground: both end with this script, and at once, for their data is thrown away.
epmd -address "$ERL_EPMD_ADDRESS" -port "$ERL_EPMD_PORT" &
mapper=$!
"$RABBITMQ_SERVER" &
server=$!

# The children of the server's own script first, or they would be nobody's.
end_all() {
  kill -KILL $(pgrep -P "$server") "$server" "$mapper" 2> /dev/null
  exit 0
}
trap end_all TERM INT
wait "$server"
kill "$mapper"
