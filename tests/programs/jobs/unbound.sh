# unbound
printf 'server:\n num-threads: 4\n interface: 127.0.0.1@18054\n chroot: ""\n username: ""\n pidfile: "%s/pid"\n local-zone: "x." static\n local-data: "a.x. A 1.2.3.4"\n use-syslog: no\n' $WORK >u.conf
$ON unbound -d -c u.conf 2>log &
P=$!
sleep 2
kill -HUP $P
sleep 1
kill -TERM $P
wait $P
