# gnuplot-nox
$ON gnuplot -e 'set term pngcairo; set out "o.png"; splot [-3:3] sin(x*y); set out' && ls o.png
