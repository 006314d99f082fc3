# pypy3
$ON pypy3 -c '
d={}
for i in range(500000): d[i%7000]=str(i)*3
print(len(d)); import threading; print(sum(len(x) for x in d.values()))'
