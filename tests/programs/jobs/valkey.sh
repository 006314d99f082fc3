# valkey-server valkey-tools
$ON valkey-server --port 18084 --save "" >log &
P=$!
until_it_answers valkey-cli -p 18084 ping
valkey-benchmark -p 18084 -n 30000 -q -c 20 -r 10000 -d 300 >/dev/null 2>&1
valkey-cli -p 18084 eval 'return redis.call("dbsize") > 1000' 0
valkey-cli -p 18084 config set activedefrag yes
valkey-cli -p 18084 memory purge
valkey-cli -p 18084 bgsave | head -c 5
sleep 0.5
valkey-cli -p 18084 shutdown nosave
wait $P
