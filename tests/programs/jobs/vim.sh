# vim-nox
seq 100000 >a
$ON vim -es -u NONE -c '%s/1/one/g' -c 'g/5/d' -c wq a
cksum <a
