# apache2 curl
mkdir html
echo hello >html/f
cat >a.conf <<X
ServerRoot $WORK
ServerName localhost
PidFile $WORK/pid
ErrorLog $WORK/e
Listen 127.0.0.1:18081
DocumentRoot $WORK/html
LoadModule mpm_event_module /usr/lib/apache2/modules/mod_mpm_event.so
LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so
<Directory $WORK/html>
Require all granted
</Directory>
X
$ON apache2 -X -f $WORK/a.conf &
P=$!
until_it_answers curl -s -o /dev/null http://127.0.0.1:18081/f
for i in $(seq 50); do curl -s http://127.0.0.1:18081/f; done
kill -TERM $P
wait $P
true
