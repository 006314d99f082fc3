# 7zip xz-utils zstd
head -c 6000000 /usr/bin/emacs-nox >a 2>/dev/null || head -c 6000000 /bin/bash >a
$ON 7z a -mmt4 o.7z a >/dev/null && $ON 7z t o.7z >/dev/null && $ON xz -T4 -k a && $ON xz -dc a.xz | cmp - a && $ON zstd -q -T4 -19 a && $ON zstd -dc a.zst | cmp - a && echo ok
