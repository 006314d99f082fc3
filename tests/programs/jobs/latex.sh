# texlive-latex-base
printf '\\documentclass{article}\\usepackage{amsmath}\\begin{document}\\tableofcontents\n' >a.tex
for i in $(seq 60); do printf '\\section{S%d} $\\sum_{i=0}^n x_i$ text text\n\n' $i >>a.tex; done
echo '\end{document}' >>a.tex
$ON pdflatex -interaction=batchmode a.tex >/dev/null && $ON pdflatex -interaction=batchmode a.tex >/dev/null && ls a.pdf
$ON luatex --version | head -1
