# bash
$ON bash -c 'declare -A h; for i in {1..50000}; do h[$i]=$i$i; done; echo ${#h[@]}; for i in {1..50}; do x=$(echo $i | cat); done; echo $x; a=({1..100000}); echo ${#a[@]}'
