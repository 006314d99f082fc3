# zsh fish
$ON zsh -fc 'typeset -A h; for i in {1..30000}; do h[$i]=${(l:i%50::x:)}; done; echo ${#h}; echo **/*(N) | wc -c; for i in {1..20}; do (echo $i) & done; wait' | sort | cksum
$ON fish -N -c 'for i in (seq 5000); set -a l (string repeat -n 10 x$i); end; count $l'
