# postgresql
chmod 777 .
export PGDATA=$WORK/d PATH=$PATH:$(echo /usr/lib/postgresql/*/bin)
S="setpriv --reuid=postgres --regid=postgres --clear-groups"
$S env HOME=/tmp $ON initdb -D $WORK/d >/dev/null || exit 3
$S $ON postgres -D $WORK/d -k $WORK -c listen_addresses= -c max_parallel_workers_per_gather=4 -c jit=on -c jit_above_cost=10 2>log &
P=$!
until_it_answers psql -h $WORK -U postgres -c 'select 1'
$ON pgbench -h $WORK -U postgres -i -s 2 -q postgres >/dev/null 2>&1
$ON pgbench -h $WORK -U postgres -c 8 -j 2 -t 100 postgres >/dev/null 2>&1
echo $?
$ON psql -h $WORK -U postgres -tc 'set min_parallel_table_scan_size=0; set parallel_setup_cost=0; select count(*), sum(length(md5(aid::text))) from pgbench_accounts; select count(distinct md5(g::text)) from generate_series(1,100000) g'
kill -INT $P
wait $P
true
