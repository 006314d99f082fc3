# haproxy curl
cat >h.cfg <<X
global
 nbthread 4
defaults
 mode http
 timeout client 5s
 timeout server 5s
 timeout connect 5s
frontend f
 bind 127.0.0.1:18083
 http-request return status 200 content-type text/plain string hello
X
$ON haproxy -f h.cfg &
P=$!
until_it_answers curl -s -o /dev/null http://127.0.0.1:18083/f
for i in $(seq 100); do curl -s http://127.0.0.1:18083/; done
kill -TERM $P
wait $P
true
