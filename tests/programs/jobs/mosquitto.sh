# mosquitto
printf 'listener 18087 127.0.0.1\nallow_anonymous true\nuser root\n' >m.conf
$ON mosquitto -c m.conf 2>err &
P=$!
sleep 1
kill -TERM $P
wait $P
