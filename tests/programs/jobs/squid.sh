# squid curl
printf 'http_port 127.0.0.1:18085\nhttp_access allow all\npid_filename %s/pid\ncache_log %s/c.log\naccess_log none\ncoredump_dir %s\nshutdown_lifetime 0 seconds\nworkers 1\n' $WORK $WORK $WORK >s.conf
$ON squid -N -f s.conf 2>>err &
P=$!
sleep 3
curl -s -o /dev/null -w '%{http_code}\n' -x http://127.0.0.1:18085 http://127.0.0.1:1/
kill -TERM $P
wait $P
