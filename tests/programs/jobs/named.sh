# bind9 python3
cat >n.conf <<X
options { directory "$WORK"; listen-on port 18053 { 127.0.0.1; }; listen-on-v6 { none; }; pid-file "$WORK/pid"; session-keyfile none; recursion no; };
zone "x" { type master; file "x.z"; };
X
(
    echo '$TTL 60'
    echo '@ SOA x. a.x. 1 1 1 1 1'
    echo ' NS a.x.'
    echo 'a A 1.2.3.4'
    for i in $(seq 20000); do echo "h$i A 10.0.0.1"; done
) >x.z
$ON named -g -c n.conf -n 4 2>log &
P=$!
sleep 3
python3 - <<X
import socket,struct
s=socket.socket(socket.AF_INET,socket.SOCK_DGRAM); s.settimeout(3); n=0
for i in range(1,2000):
    q=struct.pack(">HHHHHH",i,0,1,0,0,0)+b"".join(bytes([len(p)])+p for p in (b"h%d"%i,b"x"))+b"\0\0\1\0\1"
    s.sendto(q,("127.0.0.1",18053)); r=s.recv(600); n+=r[3]&15==0
print(n)
X
kill -TERM $P
wait $P
