# varnish gcc libc6-dev
$ON varnishd -C -b 127.0.0.1:1 2>&1 | wc -l | head -c 2
