# graphviz python3
python3 -c 'print("digraph{"+"".join(f"a{i}->a{(i*7)%200};" for i in range(500))+"}")' >a.dot
$ON dot -Tsvg a.dot | cksum
$ON neato -Tpng a.dot | wc -c | head -c 1
