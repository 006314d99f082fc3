# memcached python3
$ON memcached -u root -l 127.0.0.1 -p 18082 -m 64 -t 4 &
P=$!
sleep 0.7
python3 - <<X
import socket
s=socket.create_connection(('127.0.0.1',18082)); f=s.makefile('rwb')
for i in range(20000):
    v=b'x'*(i%3000); f.write(b'set k%d 0 0 %d\r\n%s\r\n'%(i,len(v),v)); f.flush(); assert f.readline()==b'STORED\r\n'
n=0
for i in range(20000):
    f.write(b'get k%d\r\n'%i); f.flush()
    l=f.readline()
    if l!=b'END\r\n': f.readline(); f.readline(); n+=1
print(n>1000)
X
kill -TERM $P
wait $P
