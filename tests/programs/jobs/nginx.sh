# nginx-light curl
mkdir -p logs html
head -c 100000 /dev/urandom >html/f
cat >n.conf <<X
daemon off; worker_processes 2; pid $WORK/pid; error_log $WORK/logs/e; user root;
events { worker_connections 256; }
http { access_log off; client_body_temp_path $WORK/b; proxy_temp_path $WORK/p; fastcgi_temp_path $WORK/f; uwsgi_temp_path $WORK/u; scgi_temp_path $WORK/s; gzip on; server { listen 127.0.0.1:18080; root $WORK/html; } }
X
$ON nginx -p $WORK -c $WORK/n.conf &
P=$!
until_it_answers curl -s -o /dev/null http://127.0.0.1:18080/f
for i in $(seq 100); do curl -s --compressed http://127.0.0.1:18080/f | cmp - html/f || exit 3; done
kill -HUP $P
sleep 0.5
curl -s http://127.0.0.1:18080/f | cmp - html/f || exit 4
kill -QUIT $P
wait $P
