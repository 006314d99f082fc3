# mariadb-server
$ON mariadb-install-db --user=root --datadir=$WORK/d --auth-root-authentication-method=normal >/dev/null 2>log || exit 3
$ON mariadbd --user=root --datadir=$WORK/d --socket=$WORK/s --skip-networking --pid-file=$WORK/pid --innodb-buffer-pool-size=64M 2>$WORK/log &
P=$!
until_it_answers mariadb -uroot -S $WORK/s -e 'select 1'
$ON mariadb -uroot -S $WORK/s -e 'create database x; use x; create table t(a int primary key auto_increment, b varchar(200), key(b)); insert into t(b) select md5(seq) from seq_1_to_50000; select count(*), count(distinct b), max(b) from t; select sum(length(x.b)) from t x join t y on x.b=y.b;'
mariadb-admin -uroot -S $WORK/s shutdown
wait $P
